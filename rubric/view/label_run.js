/*
 * Labels in place, on the page of a kept run that a server shows. Each is sent at once, and kept as `label` keeps them.
 *
 * Who sees the verdict first leans to it, so such a label is kept with `judge_seen`, and no figure counts it. Labels
 * that count are given blind: the candidate alone is shown, in the random order of `DRAW`, and the verdict after the label.
 *
 * `RUN` is the run, `LABELS` what this person said before, by name: value, reason, judge_seen. `DRAW` has the place of
 * each row in the order of labelling, and its name there. `IS_LIVE`: the run goes on; `HAS_CALLS`: there is a store.
 */

const passes = (/** @type {Row} */ row) => row.status === "passed";
const nameOf = (/** @type {Row} */ row) => NAMES[row.number];
const NAMES = [];
for (const [place, name] of DRAW) NAMES[place] = name;

/** Candidates whose verdict was opened in this tab; a page that is loaded again remembers them. */
const opened = new Set(JSON.parse(sessionStorage.getItem(`seen ${RUN}`) || "[]"));

/** Keep what a person says of a row; return whether it is kept, else say why not. */
async function label(/** @type {Row} */ row, /** @type {string | null} */ value, reason = "", isBlind = false) {
  try {
    const answer = await fetch(location.pathname, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ run: RUN, name: nameOf(row), rater: "", criterion: "", value, reason, judge_seen: !isBlind }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    if (value === null) delete LABELS[nameOf(row)]; else LABELS[nameOf(row)] = [value, reason, !isBlind];
    return true;
  } catch (problem) {
    $(isBlind ? "blind-state" : "label-state").textContent = `not saved: ${problem.message}. Is the command still running?`;
    return false;
  }
}

// -- beside the verdict -----------------------------------------------------------------------------------

sections.push((row) => {
  if (!blind.isOn) {
    opened.add(nameOf(row));
    sessionStorage.setItem(`seen ${RUN}`, JSON.stringify([...opened]));
  }
  const [said, why, isSeen] = LABELS[nameOf(row)] || ["", "", true];
  const reason = h("input", { type: "text", id: "label-reason", maxlength: "10000", placeholder: "why (optional)", "aria-label": "Reason for your label" });
  reason.value = why;
  const give = async (/** @type {string | null} */ value) => {
    if (!(await label(row, value, reason.value))) return;
    if (blind.isOn) blind.draw();
    else page.drawPanel();
    $("label-state").textContent = value === null ? "taken back" : "saved";
  };
  const button = (key, words, value) => h("button.button", { type: "button", "data-label": value, "aria-pressed": String(said === value),
    on: { click: () => give(said === value ? null : value) } }, h("kbd", {}, key), ` ${words}${said === value ? " ✓" : ""}`);
  const [agree, disagree] = passes(row) ? ["pass", "fail"] : ["fail", "pass"];
  const words = row.status === "ungraded" ? ["It fails", "It passes"] : [`Agree: ${agree}`, `Disagree: ${disagree}`];
  const counts = said && !isSeen ? "It was given blind, so it counts." : "A label that is given beside the verdict is kept, but agreement and align leave it out. To give labels that count, label blind (b).";
  return [section("Your label", h("p.label", {}, button("a", words[0], agree), " ", button("d", words[1], disagree), " ", reason),
    h("p.soft", { id: "label-state", role: "status", "aria-live": "polite" }, said ? `labelled: ${said}` : "not labelled"), h("p.how", { id: "label-counts" }, counts))];
});

// -- blind --------------------------------------------------------------------------------------------------

class Blind {
  constructor() {
    this.isOn = false;
    /** @type {Row | undefined} */
    this.row = undefined;
    this.isShown = false; // the verdict, once the label is given
    /** @type {Set<string>} */
    this.skipped = new Set();
  }

  start() {
    this.box = h("section.blind", { id: "blind", "aria-label": "Label blind", hidden: true });
    $("work").before(this.box);
    this.button = h("button.toggle", { type: "button", id: "label-blind", on: { click: () => this.turn(true) } }, h("kbd", {}, "b"), " label blind");
    $("count").before(this.button);
    if (new URLSearchParams(location.search).has("blind")) this.turn(true);
  }

  turn(/** @type {boolean} */ isOn) {
    this.isOn = isOn;
    document.body.classList.toggle("is-blind", isOn);
    this.box.hidden = !isOn;
    if (isOn) {
      isCalls = false;
      page.close();
      this.next();
    } else {
      this.box.replaceChildren();
      page.change({});
      page.table.table.focus({ preventScroll: true });
    }
  }

  /** The candidates that can still be labelled blind, in the random order. */
  left() {
    const free = (/** @type {string} */ name) => !Object.hasOwn(LABELS, name) && !opened.has(name) && !this.skipped.has(name);
    return DRAW.filter(([, name]) => free(name)).map(([place]) => page.data.rows[place]);
  }

  next() {
    this.row = this.left()[0];
    this.isShown = false;
    this.draw();
    scrollTo(0, 0);
    this.box.querySelector("h2")?.focus({ preventScroll: true });
  }

  async say(/** @type {string} */ value) {
    if (!this.row || this.isShown || !(await label(this.row, value, $("blind-reason").value, true))) return;
    this.isShown = true;
    this.draw();
    $("blind-next").focus();
  }

  skip() {
    if (this.row && !this.isShown) this.skipped.add(nameOf(this.row));
    this.next();
  }

  draw() {
    const { row } = this;
    const counts = Object.values(LABELS).filter(([, , isSeen]) => !isSeen).length;
    const leave = h("button.icon-button", { type: "button", on: { click: () => this.turn(false) } }, h("kbd", {}, "b"), " back to the run");
    const head = (/** @type {string} */ words) => h("div.detail-head", {}, h("div", {}, h("h2", { tabindex: "-1" }, t("span", words)),
      h("div.soft", { id: "blind-counts" }, `${count(counts)} given blind, ${count(this.left().length)} left`)), h("div.buttons", {}, leave));
    if (!row) {
      this.box.replaceChildren(head("Nothing is left to label blind"), h("p.soft", {}, "Every other candidate has a label, was passed over, or was opened beside its verdict in this tab."));
      return;
    }
    const key = (/** @type {string} */ name, /** @type {string} */ words, /** @type {() => void} */ action, id = undefined) => h("button.button", { type: "button", id, on: { click: action } }, h("kbd", {}, name), ` ${words}`);
    if (this.isShown) {
      const [said] = LABELS[nameOf(row)] || ["nothing"];
      const panel = h("div.detail");
      drawDetail(panel, row, { previous: () => this.next(), next: () => this.next(), close: () => this.turn(false), raw: () => { isRaw = !isRaw; this.draw(); } });
      panel.querySelector(".detail-head").remove();
      const judged = row.status === "ungraded" ? "the judge gave no verdict" : `the judge said: ${row.verdict || row.status}${row.figure ? ` (${row.figure})` : ""}`;
      this.box.replaceChildren(head(row.id), h("p.label", { role: "status" }, h("b", {}, `You said: ${said}; ${judged}. `), key("n", "next", () => this.next(), "blind-next")), panel);
      return;
    }
    const reason = h("input", { type: "text", id: "blind-reason", maxlength: "10000", placeholder: "why (optional, before the answer)", "aria-label": "Reason for your label" });
    const text = plain(row.output);
    this.box.replaceChildren(head(row.id),
      h("p.label", {}, h("b", {}, "All in all, does it pass? "), key("p", "pass", () => this.say("pass")), " ", key("f", "fail", () => this.say("fail")), " ", key("s", "cannot tell", () => this.skip()), " ", reason),
      h("p.soft", { id: "blind-state", role: "status" }, "What the judge said is hidden until you have answered."),
      h("div.both", {},
        h("div.judged-by", {}, section("Criteria", h("ul.criteria.in-detail", {}, (row.entries || []).map((entry) => page.data.criteria[entry.of]).map((criterion) => h("li", {}, h("span", { "aria-hidden": "true" }, "·"),
          h("div", {}, t("span.what", criterion.text), h("div.how", {}, criterion.answer ? t("span", criterion.answer) : null))))))),
        h("div.said-by", {},
          row.input ? section("Input", t("div.text.as-written", row.input)) : null,
          row.run ? section("Run", h("div.turns", {}, turns({ ...row, entries: [] }))) : null,
          text ? section("Candidate", candidate(text)) : null)));
  }
}
const blind = new Blind();
starts.push(() => blind.start());

// -- keys ---------------------------------------------------------------------------------------------------

addEventListener("keydown", (event) => {
  const field = event.target.closest?.("input, select, textarea");
  if (event.ctrlKey || event.metaKey || event.altKey || !blind.box || $("help").open) return;
  if (blind.isOn && event.key === "Escape") {
    if (field) field.blur();
    else blind.turn(false);
  } else if (field || (event.key === "Enter" && event.target.closest?.("button"))) return;
  else if (blind.isOn) {
    const actions = blind.isShown ? { n: () => blind.next(), j: () => blind.next(), Enter: () => blind.next() } : { p: () => blind.say("pass"), f: () => blind.say("fail"), s: () => blind.skip() };
    const buttons = document.querySelectorAll("[data-label]");
    const action = { b: () => blind.turn(false), r: () => { isRaw = !isRaw; blind.draw(); }, ...actions, ...(buttons.length ? { a: () => buttons[0].click(), d: () => buttons[1].click() } : {}) }[event.key];
    if (action) action();
    else if (event.key.length > 1) return; // Tab, Page Down and the like
  } else if (event.key === "b") blind.turn(true);
  else if ("ad".includes(event.key) && page.state.row >= 0) {
    const button = document.querySelectorAll("[data-label]")["ad".indexOf(event.key)];
    if (button.getAttribute("aria-pressed") !== "true") button.click();
  } else return;
  event.preventDefault();
  event.stopImmediatePropagation(); // the keys of the table have to wait
}, true);
KEYS.push(["a", "agree with the verdict"], ["d", "disagree"], ["b", "label blind: p passes, f fails, s cannot tell, n next"]);

// -- calls --------------------------------------------------------------------------------------------------

/** The calls of a row are in a page of their own, as data; what is fetched is parsed, and neither shown nor run. */
if (HAS_CALLS)
  callsFrom = async (/** @type {Row} */ row) => {
    if (row.calls) return row.calls;
    const answer = await fetch(`${location.pathname}?${new URLSearchParams({ run: RUN, calls: row.id })}`);
    if (!answer.ok) throw new Error("is the command still running?");
    const block = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("data");
    row.calls = (await unpacked(block)).calls;
    return row.calls;
  };

// -- live ---------------------------------------------------------------------------------------------------

/** Show a run that goes on anew, unless somebody is typing, reading the keys or labelling. */
if (IS_LIVE) {
  const place = `scrolled ${RUN}`;
  starts.push(() => {
    $("rows").scrollTop = Number(sessionStorage.getItem(place) || 0);
    setInterval(() => {
      if (blind.isOn || $("help").open || document.activeElement?.matches("input, select") || document.hidden) return;
      sessionStorage.setItem(place, String($("rows").scrollTop));
      location.reload();
    }, 5000);
  });
}
