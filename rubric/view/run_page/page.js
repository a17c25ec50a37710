/*
 * The page: what failed first, the filters, the table with one candidate beside it, and the keys.
 */

const KEYS = [
  ["j, ↓", "next candidate"], ["k, ↑", "previous candidate"], ["n", "next that does not pass"], ["p", "previous that does not pass"],
  ["Enter", "open it beside the table"], ["Escape", "close it, or leave the search"], ["/", "search, Enter to go on to the rows: words, \"a phrase\", reason:late, text:…, id:…"],
  ["r", "the text as written, or as Markdown"], ["x", "clear all filters"], ["?", "these keys"],
];

class Page {
  constructor(/** @type {Data} */ data) {
    this.data = data;
    this.names = data.names || [];
    this.state = fromAddress(location.hash);
    this.panel = $("detail");
    this.table = new Table($("rows"), data, { open: (at) => this.open(at), sort: (column) => this.sort(column) });
    this.tags = countsOf(data.rows.flatMap((row) => [...(row.tags || []), ...Object.entries(row.cell || {}).map(([key, value]) => `${key}: ${value}`)]));
    this.groups = countsOf(data.rows.flatMap((row) => (row.group ? [row.group] : [])));
    this.shownCosts = 8;
    this.shownRow = -1;
  }

  start() {
    this.drawTools();
    addEventListener("hashchange", () => {
      if (location.hash === toAddress(this.state)) return;
      this.state = fromAddress(location.hash);
      this.change({}, false);
    });
    addEventListener("keydown", (event) => this.key(event));
    const words = new URLSearchParams(location.search).get("q");
    this.change(words && !this.state.q ? { q: words } : {}, false);
    if (location.hash.startsWith("#case-")) $("work").scrollIntoView();
    const rest = this.data.rows.values(); // search is quick from the first key: its words are made while nothing else is done
    const prepareWords = (/** @type {IdleDeadline} */ time) => {
      for (let next = rest.next(); !next.done; next = rest.next()) {
        wordsOf(next.value);
        if (time.timeRemaining() < 2) return void requestIdleCallback(prepareWords);
      }
    };
    if (window.requestIdleCallback) requestIdleCallback(prepareWords);
  }

  /** Change the state, and show what it says. */
  change(/** @type {Partial<State>} */ more, isKept = true) {
    const before = this.table.rows[this.table.current];
    Object.assign(this.state, more);
    this.free = find(this.data, this.state);
    const { show } = this.state;
    const rows = show ? this.free.filter((row) => (row.change || row.status) === show) : this.free;
    this.table.set(rows, this.state.sort || "verdict");
    const open = this.data.rows[this.state.row];
    const at = rows.indexOf(open || before);
    if (open && at < 0) this.state.row = -1;
    this.table.choose(Math.max(at, 0));
    if (this.state.row !== this.shownRow) this.drawPanel();
    this.drawState();
    this.drawCosts();
    if (isKept) history.replaceState(null, "", toAddress(this.state));
  }

  /** Scroll to the table, if a choice above it has changed what cannot be seen. */
  reveal() {
    if (innerHeight - $("work").getBoundingClientRect().top < 240) document.querySelector(".tools").scrollIntoView();
  }

  sort(/** @type {string} */ column) {
    const now = this.state.sort;
    this.change({ sort: now === column ? `-${column}` : now === `-${column}` ? "" : column });
  }

  open(/** @type {number} */ at) {
    const row = this.table.rows[at];
    if (!row) return;
    this.state.row = row.number;
    this.table.choose(at);
    this.drawPanel();
    this.drawState();
    $("work").scrollIntoView({ block: "nearest" });
    history.replaceState(null, "", toAddress(this.state));
  }

  close() {
    this.state.row = -1;
    this.drawPanel();
    history.replaceState(null, "", toAddress(this.state));
    this.table.table.focus({ preventScroll: true });
  }

  /** Go to the next row, or with a test to the next one that it takes, which is opened. */
  move(/** @type {number} */ by, /** @type {((row: Row) => boolean) | undefined} */ test = undefined) {
    const rows = this.table.rows;
    let at = this.table.current + (test && this.state.row < 0 ? 0 : by); // the first one may be it
    while (rows[at] && test && !test(rows[at])) at += by;
    if (!rows[at]) return;
    if (test || this.state.row >= 0) this.open(at);
    else this.table.choose(at);
    this.drawState();
  }

  key(/** @type {KeyboardEvent} */ event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.closest?.("input, select, textarea");
    if (event.key === "Escape") {
      if (field === $("q")) event.preventDefault(); // a browser would empty the box, and the filter would stay
      if (field) field.blur();
      else if ($("help").open) $("help").close();
      else if (this.state.row >= 0) this.close();
      return;
    }
    if (event.key === "Enter" && field === $("q")) this.table.table.focus();
    if (field || $("help").open) return;
    const inGrid = event.target === this.table.table || event.target === document.body;
    const actions = {
      j: () => this.move(1), k: () => this.move(-1), n: () => this.move(1, isFailing), p: () => this.move(-1, isFailing),
      "/": () => $("q").focus(), "?": () => $("help").showModal(), x: () => this.change({ ...nothing(), row: this.state.row }), r: () => this.raw(), t: () => this.calls(),
      ...(inGrid ? { ArrowDown: () => this.move(1), ArrowUp: () => this.move(-1), Enter: () => this.open(this.table.current) } : {}),
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  /** Change to the calls of the open candidate, or back. */
  calls() {
    const row = this.data.rows[this.state.row];
    if (!row || !hasCalls(row)) return;
    isCalls = !isCalls;
    this.drawPanel();
    this.panel.scrollTop = 0;
  }

  raw() {
    isRaw = !isRaw;
    this.drawPanel();
  }

  drawPanel() {
    const row = this.data.rows[this.state.row], isOther = this.state.row !== this.shownRow;
    this.shownRow = this.state.row;
    this.panel.hidden = !row;
    $("work").classList.toggle("with-detail", Boolean(row));
    if (row) drawDetail(this.panel, row, { previous: () => this.move(-1), next: () => this.move(1), close: () => this.close(), raw: () => this.raw(), calls: () => this.calls() });
    else this.panel.replaceChildren();
    if (row && isOther) this.panel.scrollTop = 0;
  }

  // -- filters --------------------------------------------------------------------------------------------

  drawTools() {
    $("q").value = this.state.q;
    $("q").addEventListener("input", () => this.change({ q: $("q").value }));
    $("of").append(option("", "any criterion"), ...this.data.criteria.map((criterion, n) => option(String(n), criterion.id)));
    $("of").addEventListener("change", () => this.drawAnswers());
    $("answer").addEventListener("change", () => {
      const criterion = this.data.criteria[Number($("of").value)];
      if (!criterion || !$("answer").value) return;
      this.change({ answers: [...this.state.answers.filter(([id]) => id !== criterion.id), [criterion.id, $("answer").value]] });
      $("of").value = "";
      this.drawAnswers();
    });
    this.drawAnswers();
    for (const [id, counts, word] of [["tag", this.tags, "tag"], ["group", this.groups, "group"]]) {
      $(id).hidden = !counts.size;
      $(id).append(option("", `any ${word}`), ...[...counts].map(([name, count]) => option(name, `${name} (${count})`)));
      $(id).addEventListener("change", () => this.change({ [id]: $(id).value }));
    }
    $("previous").addEventListener("click", () => this.move(-1, isFailing));
    $("next").addEventListener("click", () => this.move(1, isFailing));
    $("keys").addEventListener("click", () => $("help").showModal());
    $("clear").addEventListener("click", () => this.change(nothing()));
    if (this.data.rows.some(hasCalls)) KEYS.push(["t", "its calls: messages and raw replies, or back"]);
    $("help").append(h("h2", {}, "Keys"), h("dl.key-list", {}, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
      h("form", { method: "dialog" }, h("button.chip-of", {}, "Close")));
  }

  /** Offer the answers that rows have for the chosen criterion. */
  drawAnswers() {
    const of = $("of").value, counts = new Map();
    $("answer").disabled = !of;
    for (const row of of ? this.data.rows : []) {
      const entry = row.cells.get(Number(of));
      if (entry) counts.set(answerOf(entry), (counts.get(answerOf(entry)) || 0) + 1);
    }
    const own = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 30).map(([name]) => name).filter((name) => !Object.hasOwn(ANSWERS, name));
    const more = this.data.names ? ["changed"] : ["costs the pass"];
    $("answer").replaceChildren(option("", "any answer"), ...[...Object.keys(ANSWERS), ...more, ...own].map((name) => option(name, name)));
  }

  drawState() {
    const { state, data } = this;
    const kinds = data.names ? CHANGES : ORDER;
    const counts = countsOf(this.free.map((row) => row.change || row.status));
    this.kinds ??= countsOf(data.rows.map((row) => row.change || row.status));
    $("shows").replaceChildren(toggle(`all ${count(this.free.length)}`, !state.show, () => this.change({ show: "" })),
      ...kinds.filter((kind) => this.kinds.has(kind) || state.show === kind).map((kind) => toggle([`${kind} `, h("b", {}, count(counts.get(kind) || 0))], state.show === kind, () => this.change({ show: state.show === kind ? "" : kind }), kind)));
    this.flags ??= FLAGS.filter(([, test]) => data.rows.some(test));
    const flags = FLAGS.filter((flag) => this.flags.includes(flag) || state.is.includes(flag[0]));
    $("flags").replaceChildren(...flags.map(([name, test, hint]) => toggle([`${name} `, h("b", {}, count(this.table.rows.filter(test).length))], state.is.includes(name),
      () => this.change({ is: state.is.includes(name) ? state.is.filter((each) => each !== name) : [...state.is, name] }), "", hint)));
    $("picked").replaceChildren(
      ...state.answers.map(([id, answer]) => picked(`${id}: ${answer}`, () => this.change({ answers: state.answers.filter(([each]) => each !== id) }))),
      ...(state.like ? [picked(`reasons like: ${cut2(state.like, state.like.indexOf("~"))[1].slice(0, 80)}`, () => this.change({ like: "" }))] : []));
    if (document.activeElement !== $("q")) $("q").value = state.q;
    $("tag").value = state.tag;
    $("group").value = state.group;
    $("clear").hidden = !(state.q || state.show || state.is.length || state.tag || state.group || state.answers.length || state.like || state.sort);
    const rows = this.table.rows;
    $("count").textContent = `${rows.length ? count(this.table.current + 1) : 0} of ${count(rows.length)}${rows.length < data.rows.length ? ` (${count(data.rows.length)} in all)` : ""}`;
    $("none").hidden = rows.length > 0;
    $("none").textContent = data.rows.length ? "Nothing matches these filters." : "There are no results.";
  }

  // -- what failed, first ---------------------------------------------------------------------------------

  /** List the criteria by what they cost, each as a filter, with the reasons that are alike below the chosen one. */
  drawCosts() {
    const box = $("costs");
    if (!box) return;
    const asked = JSON.stringify([this.state.answers, this.state.like, this.shownCosts]);
    if (asked === this.askedCosts) return;
    this.askedCosts = asked;
    this.costs ??= this.data.names ? changesOf(this.data) : costsOf(this.data);
    const { state } = this, costs = this.costs;
    const chosen = (state.answers.find(([, answer]) => ["falls short", "costs the pass", "changed"].includes(answer)) || state.like.split("~"))[0];
    const most = costs[0] ? costs[0].short || 1 : 1;
    const lines = costs.slice(0, this.shownCosts).map((one) => {
      const { id, text } = this.data.criteria[one.of];
      const filter = (/** @type {string} */ answer) => () => {
        const is = state.answers.some(([each, said]) => each === id && said === answer);
        this.change({ like: "", answers: is ? [] : [[id, answer]], show: is || answer !== "falls short" ? "" : "failed" });
        this.reveal();
      };
      const bar = h(`span.cost-bar${this.data.names ? ".paired" : ""}`, { "aria-hidden": "true" }, h("span.short"), h("span.alone"));
      bar.children[0].style.width = `${(100 * one.short) / most}%`;
      bar.children[1].style.width = `${(100 * one.alone) / most}%`;
      return h("li", {}, h("button.cost", { type: "button", "aria-pressed": String(chosen === id), title: text, on: { click: filter(this.data.names ? "changed" : "falls short") } },
        t("span.what", text), bar, h("span.num", {}, one.words)),
      one.alone && !this.data.names ? h("button.more", { type: "button", on: { click: filter("costs the pass") } }, `${count(one.alone)} by it alone`) : h("span"));
    });
    $("costs-say").textContent = !costs.length ? "No criterion falls short." : this.data.names ? `Of all ${count(this.data.rows.length)}: candidates with another answer than before, most losses first; red: where it went down.`
      : `Of all ${count(this.data.rows.length)}: failing candidates that fall short of each criterion; in full colour, and behind the link: those that would pass with this one met.`;
    const rest = costs.length - this.shownCosts;
    box.replaceChildren(h("ul.cost-list", {}, lines), rest > 0 ? h("button.more", { type: "button", on: { click: () => { this.shownCosts = costs.length; this.drawCosts(); } } }, `and ${rest} more`) : "");
    const of = this.data.criteria.findIndex(({ id }) => id === (chosen || (costs[0] && this.data.criteria[costs[0].of].id)));
    this.drawAlike(of);
  }

  drawAlike(/** @type {number} */ of) {
    const groups = of < 0 ? [] : alikeReasons(this.data, of);
    $("alike").replaceChildren(...(groups.length ? [h("h3.section", {}, "Reasons that are alike: ", t("span.plain-case", this.data.criteria[of].id)),
      h("ul.alike-list", {}, groups.slice(0, 5).map((group) => {
        const like = `${this.data.criteria[of].id}~${group.lead}`;
        return h("li", {}, h("button.cost", { type: "button", "aria-pressed": String(this.state.like === like), on: { click: () => { this.change({ like: this.state.like === like ? "" : like }); this.reveal(); } } },
          h("b.num", {}, count(group.rows.length)), t("span.what", group.lead.slice(0, 200))));
      })),
      h("p.how", {}, `${groups.length > 5 ? `And ${count(groups.length - 5)} smaller groups. ` : ""}The figures are candidates that do not pass. Two reasons are alike if they share half of their words (no numbers, no quotations).`)] : []));
  }
}

const count = (/** @type {number} */ number) => number.toLocaleString("en");
const option = (/** @type {string} */ value, /** @type {string} */ words) => h("option", { value }, words.slice(0, 80));
const toggle = (words, /** @type {boolean} */ is, /** @type {() => void} */ action, kind = "", title = undefined) =>
  h(`button.toggle.${(kind || "any").replace(/ /g, "-")}`, { type: "button", "aria-pressed": String(is), title, on: { click: action } }, words);
const picked = (/** @type {string} */ words, /** @type {() => void} */ action) => h("button.toggle.picked", { type: "button", "aria-label": `remove the filter ${words}`, on: { click: action } }, t("span", words), " ✕");

/** How often each name comes, the commonest first. */
function countsOf(/** @type {string[]} */ names) {
  const counts = new Map();
  for (const name of names) counts.set(name, (counts.get(name) || 0) + 1);
  return new Map([...counts].sort((a, b) => b[1] - a[1]));
}

/** What each criterion costs: the failing rows that fall short of it, and those that would pass with it alone met. */
function costsOf(/** @type {Data} */ data) {
  const found = data.criteria.map((_, of) => ({ of, short: 0, alone: 0, words: "" }));
  for (const row of data.rows.filter((row) => row.status === "failed")) {
    for (const entry of row.entries || []) if (entry.gated || entry.look === "unmet" || entry.look === "low") found[entry.of].short++;
    for (const of of row.costs || []) found[of].alone++;
  }
  for (const one of found) one.words = count(one.short);
  return found.filter((one) => one.short || one.alone).sort((a, b) => b.alone - a.alone || b.short - a.short);
}

/** Where two runs differ, by criterion: how many rows gained, how many lost. */
function changesOf(/** @type {Data} */ data) {
  const found = data.criteria.map((_, of) => ({ of, short: 0, alone: 0, words: "" }));
  const value = (/** @type {Entry} */ entry) => entry.score ?? 0.5;
  for (const row of data.rows.filter((row) => row.before))
    for (const entry of row.entries || [])
      if (isChanged(row, entry.of)) {
        found[entry.of].short++;
        if (value(entry) < value(row.before.cells.get(entry.of))) found[entry.of].alone++;
      }
  for (const one of found) one.words = `${count(one.alone)} down of ${count(one.short)}`;
  return found.filter((one) => one.short).sort((a, b) => b.alone - a.alone || b.short - a.short);
}

/** @type {Page} */
let page;
unpacked($("data")).then((/** @type {Data} */ data) => {
  page = new Page(prepare(data));
  page.start();
  for (const start of starts) start();
  performance.mark("table");
  document.documentElement.dataset.ready = "";
});
