/*
 * What the page shows: filters, words, order. All of it stands in the address, so that a link shows the same.
 */

/**
 * @typedef {{q: string, sort: string, show: string, is: string[], tag: string, group: string,
 *   answers: [string, string][], like: string, row: number}} State
 */

/** @returns {State} */
const nothing = () => ({ q: "", sort: "", show: "", is: [], tag: "", group: "", answers: [], like: "", row: -1 });

/** Read the state from an address: `#q=voucher&c=cites~not met`, or `#case-3` for one row. */
function fromAddress(/** @type {string} */ hash) {
  const state = nothing();
  const one = /^#case-(\d+)$/.exec(hash);
  if (one) return { ...state, row: Number(one[1]) - 1 };
  const fields = new URLSearchParams(hash.slice(1));
  for (const key of ["q", "sort", "show", "tag", "group", "like"]) state[key] = fields.get(key) || "";
  state.is = fields.getAll("is");
  state.answers = fields.getAll("c").map((said) => /** @type {[string, string]} */ (cut2(said, said.lastIndexOf("~"))));
  state.row = Number(fields.get("case") || 0) - 1;
  return state;
}

const cut2 = (/** @type {string} */ text, /** @type {number} */ at) => (at < 0 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)]);

function toAddress(/** @type {State} */ state) {
  const fields = new URLSearchParams();
  for (const key of ["q", "sort", "show", "tag", "group", "like"]) if (state[key]) fields.append(key, state[key]);
  for (const each of state.is) fields.append("is", each);
  for (const [id, answer] of state.answers) fields.append("c", `${id}~${answer}`);
  if (state.row >= 0) fields.append("case", String(state.row + 1));
  return `#${fields}`;
}

// -- words ----------------------------------------------------------------------------------------------

/** The words of a row in lower case, by field; kept, since each key that is typed asks for them. */
function wordsOf(/** @type {Row} */ row) {
  if (!row.words) {
    const reasons = [row.reason], more = [];
    const add = (/** @type {Entry} */ entry) => {
      reasons.push(entry.reason);
      for (const quote of entry.quotes || []) reasons.push(quote.text);
      for (const step of entry.path || []) reasons.push(step.reason);
      for (const each of entry.parts || []) add(each);
      for (const each of entry.votes || []) add(each);
    };
    (row.entries || []).forEach(add);
    (row.path || []).forEach((step) => reasons.push(step.reason));
    more.push(row.input, plain(row.output), ...(row.run || []), ...(row.warnings || []), row.judge, row.rubric);
    const join = (/** @type {(string|undefined)[]} */ parts) => parts.filter(Boolean).join("\n").toLowerCase();
    row.words = { id: join([row.id, row.group, ...(row.tags || []), ...Object.values(row.cell || {})]), text: join(more), reason: join(reasons) };
    if (row.before) row.words.reason += `\n${wordsOf(row.before).reason}`;
  }
  return row.words;
}

/** Read words: `voucher "full price" reason:late id:k1`; all of them must occur, a field's in that field. */
function readWords(/** @type {string} */ q) {
  const found = q.toLowerCase().matchAll(/(?:(id|text|reason):)?(?:"([^"]*)"?|(\S+))/g);
  return [...found].map(([, field, phrase, word]) => ({ field, word: phrase ?? word })).filter(({ word }) => word);
}

function hasWords(/** @type {Row} */ row, /** @type {ReturnType<typeof readWords>} */ asked) {
  if (!asked.length) return true;
  const words = wordsOf(row);
  return asked.every(({ field, word }) => (field ? words[field].includes(word) : words.id.includes(word) || words.reason.includes(word) || words.text.includes(word)));
}

// -- people ----------------------------------------------------------------------------------------------

/** What most people say of the whole: true, it passes; undefined where as many say one thing as another, or none a verdict. */
function saidOf(/** @type {Row} */ row) {
  const said = ((row.people || {})[""] || "").split("; ").map((words) => /^(?:(pass|yes)|fail|no)\b/.exec(words)).filter(Boolean);
  const passes = said.filter(([, passing]) => passing).length * 2 - said.length;
  return passes ? passes > 0 : undefined;
}

/** True if people say of *row* what the judge of *judged* does not. */
function isOtherwise(/** @type {Row} */ judged, /** @type {Row} */ row) {
  const said = saidOf(row);
  return said !== undefined && judged.status !== "ungraded" && judged.status !== "deferred" && said !== (judged.status === "passed");
}
const isSplit = (/** @type {Row} */ row) => ["first alone passes", "second alone passes"].includes(row.change || "");

// -- filters --------------------------------------------------------------------------------------------

/** Flags that rows are filtered by: the name, what it tests, and what it means. @type {[string, (row: Row) => boolean, string][]} */
const FLAGS = [
  ["judges disagree", (row) => row.disagrees, "Votes are on both sides"],
  ["undecided", (row) => Boolean(row.undecided), "Ungraded, and the missing verdicts decide whether it passes"],
  ["borderline", (row) => row.verdict === "borderline", "Fails, but not by much"],
  ["vacuous", (row) => Boolean(row.vacuous), "Passes since nothing applied"],
  ["people say otherwise", (row) => isOtherwise(row, row), "People gave another verdict than the judge"],
  ["people side with the first", (row) => isSplit(row) && isOtherwise(row, row), "The judges disagree, and people say what the first does"],
  ["people side with the second", (row) => isSplit(row) && isOtherwise(row.before, row), "The judges disagree, and people say what the second does"],
  ["gate failed", (row) => Boolean(row.gates && row.gates.length), "A required criterion failed it"],
];

/** True if an entry does not reach what is asked of it; "met in part" may be enough. */
function fallsShort(/** @type {Entry} */ entry) {
  return entry.look === "unmet" || entry.look === "low" || Boolean(entry.gated);
}

/** The names of the looks that a criterion can be filtered by, each with what it takes. */
const ANSWERS = {
  "falls short": fallsShort,
  "met": (/** @type {Entry} */ e) => e.look === "met",
  "met in part": (/** @type {Entry} */ e) => e.look === "part" || e.look === "low",
  "no verdict": (/** @type {Entry} */ e) => e.look === "open" || e.look === "unsure",
  "does not apply": (/** @type {Entry} */ e) => e.look === "none",
  "judges disagree": disagrees,
};

/** Return the test of one filter by criterion and answer; `costs` takes the rows that it alone costs the pass. */
function testOf(/** @type {Data} */ data, /** @type {string} */ id, /** @type {string} */ answer) {
  const of = data.criteria.findIndex((criterion) => criterion.id === id);
  if (answer === "costs the pass") return (/** @type {Row} */ row) => (row.costs || []).includes(of);
  if (answer === "changed") return (/** @type {Row} */ row) => isChanged(row, of);
  const holds = Object.hasOwn(ANSWERS, answer) ? ANSWERS[answer] : ((/** @type {Entry} */ entry) => answerOf(entry) === answer);
  const all = data.criteria.flatMap((criterion, n) => (criterion.id === id ? [n] : []));
  return (/** @type {Row} */ row) => all.some((n) => row.cells.has(n) && holds(row.cells.get(n)));
}

function isChanged(/** @type {Row} */ row, /** @type {number} */ of) {
  const now = row.cells.get(of), old = row.before && row.before.cells.get(of);
  return Boolean(now && old && (now.look !== old.look || answerOf(now) !== answerOf(old)));
}

/** Return the rows of a state in its order, whatever their verdicts are. @returns {Row[]} */
function find(/** @type {Data} */ data, /** @type {State} */ state) {
  const tests = [];
  const asked = readWords(state.q);
  for (const name of state.is) tests.push(FLAGS.find(([each]) => each === name)?.[1] || (() => true));
  if (state.tag) tests.push((row) => (row.tags || []).includes(state.tag) || Object.entries(row.cell || {}).some(([key, value]) => `${key}: ${value}` === state.tag));
  if (state.group) tests.push((row) => row.group === state.group);
  for (const [id, answer] of state.answers) tests.push(testOf(data, id, answer));
  if (state.like) {
    const alike = groupOf(data, state.like);
    tests.push((row) => alike.has(row));
  }
  if (asked.length) tests.push((row) => hasWords(row, asked));
  const rows = inOrder(data, state.sort);
  return tests.length ? rows.filter((row) => tests.every((test) => test(row))) : rows;
}

// -- order ----------------------------------------------------------------------------------------------

const CHANGES = ["broken", "first alone passes", "fixed", "second alone passes", "still failing", "both fail", "other", "new alone", "old alone", "still passing", "both pass"];

/** Return what a row is ordered by in a column. @returns {(row: Row) => any} */
function keyOf(/** @type {Data} */ data, /** @type {string} */ column) {
  const low = (/** @type {Row} */ row) => row.score ?? row.low ?? -1;
  if (column === "id") return (row) => row.id;
  if (column === "score") return low;
  if (column === "cost") return (row) => row.cost ?? -1;
  if (column === "delta") return (row) => (row.before ? low(row) - low(row.before) : 0);
  if (column === "verdict") return (row) => (row.change ? CHANGES.indexOf(row.change) : ORDER.indexOf(row.status)) * 10 + low(row);
  if (column === "given") return (row) => row.number;
  const of = Number(column.slice(1));
  return (row) => {
    const entry = row.cells.get(of);
    return entry ? entry.score ?? ["open", "unsure", "none"].indexOf(entry.look) + 2 : 9;
  };
}

/**
 * All rows by a column, `-` before it for the other way; without one, failing ones come first and the worst before.
 * An order is kept: a filter then only leaves rows out.
 */
function inOrder(/** @type {Data} */ data, /** @type {string} */ sort) {
  if (inOrder.kept.has(sort)) return inOrder.kept.get(sort);
  const isDown = sort.startsWith("-");
  const key = keyOf(data, sort.replace(/^-/, "") || "verdict");
  const keyed = data.rows.map((row) => ({ row, key: key(row) }));
  const names = new Intl.Collator("en", { numeric: true });
  const compare = keyed.length && typeof keyed[0].key === "string" ? (a, b) => names.compare(a.key, b.key) : (a, b) => a.key - b.key;
  keyed.sort((a, b) => (isDown ? compare(b, a) : compare(a, b)) || a.row.number - b.row.number);
  const rows = keyed.map(({ row }) => row);
  inOrder.kept.set(sort, rows);
  return rows;
}
inOrder.kept = new Map();

// -- alike reasons --------------------------------------------------------------------------------------

/**
 * Group the reasons of what falls short of a criterion, without a model: two are alike if they share half of their words
 * (of three letters or more, without numbers and quotations); the commonest reason leads its group. Of votes, those of
 * the votes that fall short count.
 * @returns {{lead: string, rows: Row[]}[]} the largest first
 */
function alikeReasons(/** @type {Data} */ data, /** @type {number} */ of) {
  const kept = alikeReasons.kept.get(of);
  if (kept) return kept;
  /** @type {Map<string, {reason: string, words: Set<string>, rows: Set<Row>}>} */
  const same = new Map();
  for (const row of data.rows) {
    const entry = row.cells.get(of);
    if (!entry || !fallsShort(entry) || row.status === "passed") continue;
    for (const reason of entry.votes ? entry.votes.filter(fallsShort).map((vote) => vote.reason) : [entry.reason]) {
      if (!reason) continue;
      const words = new Set(reason.toLowerCase().replace(/["“'][^"”']*["”']/g, " ").match(/\p{L}{3,}/gu) || []);
      const key = [...words].sort().join(" ");
      if (!same.has(key)) same.set(key, { reason, words, rows: new Set() });
      same.get(key).rows.add(row);
    }
  }
  const groups = [];
  for (const one of [...same.values()].sort((a, b) => b.rows.size - a.rows.size)) {
    const lead = groups.find((group) => share(group.words, one.words) >= 0.5);
    if (lead) for (const row of one.rows) lead.rows.add(row);
    else if (groups.length < 400) groups.push({ lead: one.reason, words: one.words, rows: new Set(one.rows) });
  }
  const found = groups.map((group) => ({ lead: group.lead, rows: [...group.rows] })).sort((a, b) => b.rows.length - a.rows.length);
  alikeReasons.kept.set(of, found);
  return found;
}
alikeReasons.kept = new Map();

/** The share of the words of both that are in both. */
function share(/** @type {Set<string>} */ a, /** @type {Set<string>} */ b) {
  let both = 0;
  for (const word of a) if (b.has(word)) both++;
  return both / (a.size + b.size - both || 1);
}

/** Return the rows of a group, which the address names by its criterion and the reason that leads it. */
function groupOf(/** @type {Data} */ data, /** @type {string} */ like) {
  const [id, lead] = cut2(like, like.indexOf("~"));
  const of = data.criteria.findIndex((criterion) => criterion.id === id);
  return new Set(alikeReasons(data, of).find((group) => group.lead === lead)?.rows || []);
}
