/*
 * The table: a row a candidate, a column a criterion. Only the rows in sight are in the page, so ten thousand scroll.
 */

const ROW = 38, CARD = 104, SPARE = 4; // heights in pixels, and rows that are drawn beyond what is in sight

class Table {
  /** @param {HTMLElement} box @param {Data} data @param {{open: (n: number) => void, sort: (column: string) => void}} do_ */
  constructor(box, data, do_) {
    this.box = box;
    this.data = data;
    this.do = do_;
    /** @type {Row[]} */
    this.rows = [];
    this.current = 0;
    this.isNarrow = matchMedia("(max-width: 600px)");
    this.columns = columnsOf(data);
    this.head = h("tr", {}, this.columns.map((column) => this.headOf(column)));
    this.body = h("tbody");
    const widths = h("colgroup", {}, this.columns.map((column) => h(`col.${column.kind}${data.names ? ".paired" : ""}`)));
    this.table = h("table.run-table", { role: "grid", tabindex: "0", "aria-label": "Results" }, widths, h("thead", {}, this.head), this.body);
    box.append(this.table);
    this.top = 0; // how far the box is scrolled, and its height: kept, since to ask for them lays out the whole page
    this.seen = 1000;
    box.addEventListener("scroll", () => this.soon(), { passive: true });
    this.isNarrow.addEventListener("change", () => this.soon());
    new ResizeObserver(() => this.soon()).observe(box);
    this.body.addEventListener("click", (event) => {
      const line = event.target.closest("tr.case");
      if (line) this.do.open(Number(line.dataset.at));
    });
  }

  headOf(column) {
    const button = h("button.sort", { type: "button", title: column.hint, on: { click: () => this.do.sort(column.key) } }, t("span", column.name));
    return h(`th.${column.kind}`, { scope: "col", "data-key": column.key }, button);
  }

  get height() {
    return this.isNarrow.matches ? CARD : ROW;
  }

  /** Take these rows, in this order; `choose` shows them. */
  set(/** @type {Row[]} */ rows, /** @type {string} */ sort) {
    this.rows = rows;
    this.table.setAttribute("aria-rowcount", String(rows.length + 1));
    for (const cell of this.head.children) {
      const is = cell.dataset.key === sort.replace(/^-/, "");
      if (is) cell.setAttribute("aria-sort", sort.startsWith("-") ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  /** Make a row the current one, and bring it into sight. */
  choose(/** @type {number} */ at) {
    this.current = Math.max(0, Math.min(at, this.rows.length - 1));
    const top = this.current * this.height, free = this.seen - this.height - (this.isNarrow.matches ? 0 : ROW);
    const wanted = Math.min(top, Math.max(this.top, top - free));
    if (wanted !== this.top) this.wanted = wanted;
    this.top = wanted;
    this.draw();
    this.soon();
  }

  /** Before the next picture, scroll to where a choice was made, and draw what is in sight. */
  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      if (this.wanted !== undefined) this.box.scrollTop = this.wanted;
      this.wanted = undefined;
      this.top = this.box.scrollTop;
      this.seen = this.box.clientHeight;
      this.draw();
    });
  }

  draw() {
    const height = this.height, count = this.rows.length;
    const first = Math.max(0, Math.min(Math.floor(this.top / height), count - 1) - SPARE);
    const last = Math.min(count, Math.ceil((this.top + this.seen) / height) + SPARE);
    const now = [this.rows, first, last, this.current, height];
    if (this.drawn?.every((each, n) => each === now[n])) return;
    this.drawn = now;
    const lines = [];
    for (let at = first; at < last; at++) lines.push(this.line(at));
    this.body.replaceChildren(pad(first * height), ...lines, pad((count - last) * height));
    if (count) this.table.setAttribute("aria-activedescendant", `row-${this.current}`);
    else this.table.removeAttribute("aria-activedescendant");
  }

  line(/** @type {number} */ at) {
    const row = this.rows[at];
    const isCurrent = at === this.current;
    const line = h(`tr.case.${row.status}${isCurrent ? ".current" : ""}`, { id: `row-${at}`, "data-at": at, "aria-rowindex": at + 2, "aria-selected": String(isCurrent) },
      this.columns.map((column) => column.cell(row)));
    line.style.height = `${this.height}px`;
    return line;
  }
}

function pad(/** @type {number} */ height) {
  const line = h("tr.pad", { "aria-hidden": "true" }, h("td"));
  line.style.height = `${height}px`;
  line.hidden = !height;
  return line;
}

/** The columns: a key that the address names, words for the head, and the cell of a row. */
function columnsOf(/** @type {Data} */ data) {
  const has = (/** @type {(row: Row) => any} */ test) => data.rows.some(test);
  const columns = [
    { key: "id", kind: "name", name: "candidate", hint: "the candidate's key, or its place", cell: (row) => h("th.name", { scope: "row" }, h("span.id.t", {}, h(`span.status.${row.status}`, { "aria-hidden": "true" }, SIGNS[row.status]), " ", row.id),
      h("span.excerpt.t", {}, [...(row.tags || []), ...Object.values(row.cell || {})].join(" · ") || excerpt(row)), h("span.failing.t", {}, failingOf(data, row))) },
    { key: "verdict", kind: "verdict", name: data.names ? "change" : "verdict", hint: "failing first", cell: (row) => h("td.verdict", {}, h(`span.badge.${row.status}`, {}, row.change || verdictOf(row))) },
    { key: "score", kind: "score", name: "score", hint: "the score, or between what it lies", cell: (row) => h("td.score.num", {},
      row.before && row.before.figure && row.before.figure !== row.figure ? h("span.was", {}, `${row.before.figure} → `) : null, t("span", row.figure || "")) },
  ];
  data.criteria.forEach((criterion, n) => columns.push({ key: `c${n}`, kind: "criterion", name: criterion.id, hint: criterion.text, cell: (row) => cellOf(row, n) }));
  if (has((row) => row.cost !== undefined)) columns.push({ key: "cost", kind: "spent", name: "cost", hint: "US dollars", cell: (row) => h("td.spent.num", {}, row.cost === undefined ? "" : `$${row.cost.toFixed(row.cost < 0.01 ? 5 : 3)}`) });
  return columns;
}

const SIGNS = { passed: "✓", failed: "✕", ungraded: "!", deferred: "…" };
const verdictOf = (/** @type {Row} */ row) => (row.vacuous ? "vacuous" : row.verdict || row.status);
const excerpt = (/** @type {Row} */ row) => (typeof row.output === "string" ? row.output : plain(row.output).slice(0, 300)).slice(0, 120) || (row.input || "").slice(0, 120);

/** The criteria that a row falls short of, in a line: what a card on a small screen shows. */
const failingOf = (/** @type {Data} */ data, /** @type {Row} */ row) =>
  (row.entries || []).filter((entry) => entry.gated || ["unmet", "low", "open", "unsure"].includes(entry.look)).map((entry) => `${LOOKS[entry.look][0]}\u00a0${data.criteria[entry.of].id.replace(/ /g, "\u00a0")}`).join("  ");

function cellOf(/** @type {Row} */ row, /** @type {number} */ n) {
  const entry = row.cells.get(n);
  if (!entry) return h("td.criterion");
  const [sign, word, kind] = LOOKS[entry.look];
  const old = row.before && row.before.cells.get(n);
  const was = old && isChanged(row, n) ? h("span.was", {}, `${LOOKS[old.look][0]} ${answerOf(old)} → `) : null;
  return h(`td.criterion.look.${entry.gated ? "gated" : kind}`, { title: `${word}${entry.gated ? ", gate failed" : ""}${entry.reason ? `: ${entry.reason.slice(0, 300)}` : ""}` },
    was, h("span.sign", { "aria-hidden": "true" }, sign), " ", t("span", answerOf(entry)),
    disagrees(entry) ? h("span.split", { title: "the judges disagree" }, " ⇄") : null);
}
