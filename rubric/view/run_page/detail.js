/*
 * One candidate: why it was judged so to the left, what it said to the right, with the quotes between them.
 */

/** What others add below a candidate, such as labels: each returns nodes for a row. @type {((row: Row) => Node[])[]} */
const sections = [];

/** What others do once the page is there. @type {(() => void)[]} */
const starts = [];

const badge = (/** @type {string} */ words, kind = "plain") => h(`span.badge.t.${kind}`, {}, words);
const section = (/** @type {string} */ title, ...body) => h("section", {}, h("h3.section", {}, title), body);

/** A long text, folded to a few lines; a button shows all of it. */
function clamped(/** @type {string} */ words, /** @type {string} */ name = "p.why") {
  const text = t(name, words);
  if (words.length < 320 && words.split("\n").length < 6) return [text];
  text.classList.add("clamped");
  const more = h("button.more", { type: "button", "aria-expanded": "false", on: { click: () => {
    const isFolded = text.classList.toggle("clamped");
    more.textContent = isFolded ? "more" : "less";
    more.setAttribute("aria-expanded", String(!isFolded));
  } } }, "more");
  return [text, more];
}

/** @returns {Node[]} */
const quotes = (/** @type {Quote[]} */ all = []) => all.map((quote) => h(`blockquote.quote${quote.missing ? ".missing" : ""}`, {},
  t("span", `“${quote.text}” `),
  quote.mark ? h("button.to-quote", { type: "button", "data-quote": quote.mark, "aria-label": `quote ${quote.mark} in the text` }, `[${quote.mark}]`)
    : quote.missing ? h("span", {}, "not found in the candidate")
      : quote.where ? h("button.to-quote", { type: "button", "data-where": quote.where, "data-words": quote.text }, quote.where) : null));

const steps = (/** @type {Step[]} */ path) => h("ol.path", {}, path.map((step) => h(`li.${step.yes ? "yes" : "no"}`, {},
  t("span", step.question), " ", h("b", {}, step.yes ? "yes" : "no"), " ", h("span.soft.num", {}, step.score.toFixed(2)),
  step.reason ? clamped(step.reason) : null)));

/** One criterion, with its parts and its votes. @param {Entry} entry @param {Criterion} criterion */
function drawCriterion(entry, criterion, old = null) {
  const [sign, word, kind] = LOOKS[entry.look];
  const told = entry.look === "none" ? entry.word || word : word;
  const how = [t("span", criterion.id, { class: "mono t" }), criterion.answer ? t("span", ` · ${criterion.answer}`) : null,
    (criterion.weight ?? 1) === 1 ? null : ` · weight ${criterion.weight ?? 1}`];
  return h("li", { "data-of": entry.of },
    h(`span.icon.${kind}`, { role: "img", "aria-label": told, title: told }, sign),
    h("div", {},
      h("div", {}, t("span.what", criterion.text), entry.gated ? [" ", badge("gate failed", "gate")] : null, entry.lack ? [" ", badge(entry.lack, "failed")] : null,
        disagrees(entry) ? [" ", badge("the judges disagree", "borderline")] : null),
      h("div.how", {}, how),
      old ? beside(old, entry) : entry.reason && !entry.votes ? clamped(entry.reason) : null,
      old || entry.votes ? null : quotes(entry.quotes)),
    h("div.answer", {}, t(`b.${kind}`, answerOf(entry)), entry.score === undefined || answerOf(entry) === (entry.figure || entry.score.toFixed(2)) ? null : h("small.num", {}, entry.figure || entry.score.toFixed(2))),
    entry.path || entry.parts || entry.votes ? h("div.below", {},
      entry.path ? steps(entry.path) : null,
      entry.parts ? h("ul.criteria", {}, entry.parts.map(drawPart)) : null,
      entry.votes && !old ? opinions(entry.votes) : null) : null);
}

/** What failed, is open or split before the rest, else in the order of the rubric. */
function worstFirst(/** @type {Entry[]} */ entries) {
  const rank = (/** @type {Entry} */ entry) => (entry.gated ? 0 : fallsShort(entry) ? 1 : LOOKS[entry.look][2] === "open" ? 2 : disagrees(entry) ? 3 : 4);
  return [...entries].sort((a, b) => rank(a) - rank(b));
}

const drawPart = (/** @type {Entry} */ part) => drawCriterion(part, { id: part.id || "", text: part.text || "", weight: 1 });

/** The votes of a jury, each with its reason. */
const opinions = (/** @type {Entry[]} */ votes) => h("table.votes", {}, h("tbody", {}, votes.map((vote) => h("tr", {},
  h("td", {}, t("span", vote.judge || "")),
  h("td", {}, t(`b.${LOOKS[vote.look][2]}`, `${LOOKS[vote.look][0]} ${answerOf(vote)}`)),
  h("td", {}, vote.reason ? clamped(vote.reason) : null, quotes(vote.quotes))))));

/** The old and the new verdict on one criterion, each with its reason. */
const beside = (/** @type {Entry} */ old, /** @type {Entry} */ now) => h("div.beside", {}, [[0, old], [1, now]].map(([side, entry]) =>
  h("div", {}, h("div.how", {}, page.names[side], ": ", t(`b.${LOOKS[entry.look][2]}`, `${LOOKS[entry.look][0]} ${answerOf(entry)}`)),
    entry.reason ? clamped(entry.reason) : null, side ? quotes(entry.quotes) : null)));

/** The criteria of two runs: those with another answer, then the others behind a line. */
function twoVerdicts(/** @type {Row} */ row) {
  const [changed, same] = [true, false].map((is) => row.entries.filter((entry) => isChanged(row, entry.of) === is));
  const drawn = (/** @type {Entry[]} */ entries) => h("ul.criteria.in-detail", {}, entries.map((entry) => drawCriterion(entry, page.data.criteria[entry.of], row.before.cells.get(entry.of))));
  return [changed.length ? section("Criteria with another answer", drawn(changed)) : h("p.soft", {}, "Every criterion has the same answer in both."),
    same.length ? h("details.fold", {}, h("summary", {}, `${same.length} with the same answer`), drawn(same)) : null];
}

// -- the text -------------------------------------------------------------------------------------------

const ROLE = /^\[([\d.]+)\] (?:(call|state|sub-agent)\b ?|([\w -]{1,40})((?: "[^"]*")?(?: to "[^"]*")?): ?)([\s\S]*)$/;

/** The turns of a conversation or a run, each with what was judged of it. */
function turns(/** @type {Row} */ row) {
  const judged = new Map();
  for (const entry of row.entries || [])
    for (const quote of entry.quotes || []) {
      const place = /^(?:step|turn) ([\d.]+)$/.exec(quote.where || "");
      if (place) judged.set(place[1], [...(judged.get(place[1]) || []), [entry, quote]]);
    }
  return (row.run || []).map((said) => {
    const found = ROLE.exec(said);
    const [, step, kind, role, names, words] = found || [null, "", "", "", "", said];
    const about = judged.get(step) || [];
    const name = role ? role + names : kind || "";
    return h(`div.turn-of.${/^(assistant|model|agent)/.test(role || "") ? "own" : kind ? "tool" : "other"}`, { "data-step": step },
      h("div.how", {}, step ? h("span.num", {}, `${step} `) : null, t("b", name)),
      h(`${kind ? "pre" : "div"}.said.t`, { dir: "auto" }, withQuotes(words.replace(/\n {4}/g, "\n"), about.map(([, quote]) => quote.text))),
      about.length ? h("div.judged", {}, about.map(([entry]) => h("button.chip-of", { type: "button", "data-to": entry.of },
        t(`span.${LOOKS[entry.look][2]}`, `${LOOKS[entry.look][0]} ${page.data.criteria[entry.of].id}`)))) : null);
  });
}

/** A text in which given words are marked. */
function withQuotes(/** @type {string} */ words, /** @type {string[]} */ marked) {
  let said = withoutSigns(words);
  for (const quote of new Set(marked)) {
    const at = said.indexOf(quote);
    if (at >= 0) said = `${said.slice(0, at)}${START}${MIDDLE}${said.slice(at, at + quote.length)}${END}${said.slice(at + quote.length)}`;
  }
  return new Marker().nodes(said);
}

/** Whether texts are shown as they were written; `r` changes it. */
let isRaw = false;

function candidate(/** @type {Row["output"]} */ output) {
  const text = signed(output);
  return isRaw || !looksLikeMarkdown(text) ? raw(text) : markdown(text);
}

/** The two texts of a candidate in two runs, as one with the differences marked; or the text that is the same in both. */
function twoTexts(/** @type {Row} */ row) {
  const old = plain(row.before.output), now = plain(row.output);
  if (old === now) return [h("p.soft", {}, "The text is the same in both."), candidate(row.output)];
  const parts = differences(old, now).map(([kind, words]) => (kind === "same" ? words : h(kind === "old" ? "del" : "ins", {}, words)));
  return [h("p.soft", {}, h("del", {}, page.names[0]), " ", h("ins", {}, page.names[1])), h("pre.text.as-written", { dir: "auto" }, parts)];
}

// -- the calls ------------------------------------------------------------------------------------------

/** Gets the calls of a row from a server that knows the store; a page without one has those of its data alone. */
let callsFrom = undefined;
const hasCalls = (/** @type {Row} */ row) => Boolean(row.calls || callsFrom);

/** Whether the second tab is open: the calls of the candidate instead of what was judged; `t` changes it. */
let isCalls = false;

/** The requests about a candidate, each with its messages and its raw reply. */
function drawCalls(/** @type {Row} */ row) {
  const box = h("div.calls", { role: "tabpanel", "aria-label": "Calls" }, h("p.soft", {}, "looking …"));
  const long = (/** @type {string} */ words) => h("pre.text.as-written", { dir: "auto", tabindex: "0" }, withoutSigns(words));
  const draw = (/** @type {Call[]} */ calls) => box.replaceChildren(h("p.soft.num", {}, calls.length ? `${count(calls.length)} calls` : "The store has no call about this candidate."),
    ...calls.map((call) => h("details.fold", { open: calls.length === 1 }, h("summary", {}, call.end ? [badge(call.end, call.end === "done" ? "passed" : "ungraded"), " "] : null, t("span", [call.judge, call.about].filter(Boolean).join(" · "))),
      call.more ? h("p.soft.num", {}, call.more) : null, section("reply", long(call.reply || "")),
      (call.messages || []).map(([role, words]) => section(role, long(words))))));
  Promise.resolve(row.calls || callsFrom(row)).then(draw, (problem) => box.replaceChildren(h("p.notice.warning", {}, `The calls cannot be shown: ${problem.message}`)));
  return box;
}

// -- all of it ------------------------------------------------------------------------------------------

/** Draw one row into the panel beside the table. */
function drawDetail(/** @type {HTMLElement} */ panel, /** @type {Row} */ row, /** @type {Object<string, () => void>} */ do_) {
  const two = row.before;
  const remarks = [row.reason && row.status !== "passed" ? [row.reason, row.status] : null, ...(row.warnings || []).map((words) => [words, "warning"])].filter(Boolean);
  const title = h("div.detail-head", {},
    h("div", {}, h("h2", { tabindex: "-1" }, t("span", row.id)), h("div.soft", {}, badge(row.change || row.verdict || row.status, row.status), " ",
      h("span.num", {}, [row.figure, row.needs].filter(Boolean).join(", ")), two && two.figure ? h("span.num", {}, ` · ${page.names[0]}: ${two.figure} ${two.verdict || two.status}`) : null,
      (row.gates || []).map((gate) => [" ", badge(`gate: ${gate}`, "gate")]), row.vacuous ? [" ", badge("vacuous: nothing applied")] : null)),
    h("div.buttons", {},
      hasCalls(row) ? h("div.tabs", { role: "tablist" }, [["verdict", false], ["calls (t)", true]].map(([words, is]) =>
        h("button.icon-button", { type: "button", role: "tab", "aria-selected": String(isCalls === is), on: { click: () => isCalls === is || do_.calls() } }, words))) : null,
      h("button.icon-button", { type: "button", "aria-label": "Previous (k)", title: "previous (k)", on: { click: do_.previous } }, "↑"),
      h("button.icon-button", { type: "button", "aria-label": "Next (j)", title: "next (j)", on: { click: do_.next } }, "↓"),
      h("button.icon-button", { type: "button", "aria-label": "Close (Escape)", title: "close (Escape)", on: { click: do_.close } }, "✕")));
  const judged = h("div.judged-by", {},
    remarks.map(([words, kind]) => t(`p.notice.${kind}`, words)),
    Object.entries(row.people || {}).length ? section("People said", h("ul", {}, Object.entries(row.people).map(([id, said]) => h("li", {}, t("span", `${id || "the whole"}: ${said}`))))) : null,
    row.votes ? section(`Votes: ${row.votes.filter((vote) => vote.verdict === "pass").length} of ${row.votes.length} pass`,
      h("table.votes", {}, h("tbody", {}, row.votes.map((vote) => h("tr", {}, h("td", {}, t("span", vote.judge)), h("td.num", {}, vote.score === undefined ? "no score" : vote.score.toFixed(2)),
        h("td", {}, badge(vote.verdict || "–", vote.verdict === "pass" ? "passed" : vote.verdict === "fail" ? "failed" : "ungraded"))))))) : null,
    row.path ? section("Path", steps(row.path)) : null,
    row.entries && !two ? section("Criteria", h("ul.criteria.in-detail", {}, worstFirst(row.entries).map((entry) => drawCriterion(entry, page.data.criteria[entry.of])))) : null,
    row.entries && two ? twoVerdicts(row) : null,
    sections.map((draw) => draw(row)),
    h("p.meta.num", {}, [row.rubric && `rubric: ${row.rubric}`, row.judge && `judge: ${row.judge}`, row.usage, row.place, row.group && `group: ${row.group}`,
      ...(row.tags || []), ...Object.entries(row.cell || {}).map(([name, value]) => `${name}: ${value}`)].filter(Boolean).map((words) => t("span", words))));
  const hasText = plain(row.output) || (two && plain(two.output));
  const text = h("div.said-by", {},
    row.input ? section("Input", clamped(row.input, "div.text.as-written")) : null,
    row.run ? section("Run", h("div.turns", {}, turns(row))) : null,
    hasText ? section("Candidate", two ? twoTexts(row) : candidate(row.output),
      !two && looksLikeMarkdown(signed(row.output)) ? h("button.more", { type: "button", on: { click: do_.raw } }, isRaw ? "as Markdown (r)" : "as written (r)") : null) : null);
  panel.replaceChildren(title, isCalls && hasCalls(row) ? drawCalls(row) : h("div.both", {}, judged, text.childNodes.length ? text : null));
  panel.onclick = (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const { mark, quote, where, to } = button.dataset;
    if (quote) show(panel.querySelector(`[data-mark="${CSS.escape(quote)}"]`)?.closest("mark"));
    else if (mark) show(panel.querySelector(`[data-quote="${CSS.escape(mark)}"]`)?.closest("blockquote"));
    else if (where) show(placeOf(panel, where, button.dataset.words));
    else if (to) show(panel.querySelector(`[data-of="${CSS.escape(to)}"]`));
  };
}

/** The turn that a quote names; in it, the mark with the words. */
function placeOf(/** @type {HTMLElement} */ panel, /** @type {string} */ where, /** @type {string} */ words) {
  const turn = panel.querySelector(`[data-step="${CSS.escape(where.replace(/^(step|turn) /, ""))}"]`);
  return turn && ([...turn.querySelectorAll("mark")].find((mark) => words.startsWith(mark.textContent)) || turn);
}

/** Scroll to an element, and show it for a moment. */
function show(/** @type {HTMLElement | null | undefined} */ element) {
  if (!element) return;
  element.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  element.querySelector("button")?.focus({ preventScroll: true });
  element.classList.remove("shown");
  requestAnimationFrame(() => element.classList.add("shown"));
}
