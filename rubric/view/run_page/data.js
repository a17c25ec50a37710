"use strict";
/*
 * The page of a run: its data, and what every part of the page needs.
 * All texts of the data come from strangers. They are set as text: no string becomes markup, no address is opened.
 */

/**
 * @typedef {{text: string, mark?: number, where?: string, missing?: boolean}} Quote
 * @typedef {{question: string, yes?: boolean, score: number, reason?: string}} Step
 * @typedef {{of?: number, id?: string, text?: string, look: string, word?: string, value?: string, level?: string,
 *   score?: number, figure?: string, gated?: boolean, lack?: string, reason?: string, quotes?: Quote[], path?: Step[],
 *   parts?: Entry[], votes?: Entry[], judge?: string}} Entry
 * @typedef {{id: string, status: string, verdict?: string, score?: number, figure: string, needs?: string,
 *   low?: number, undecided?: boolean, reason?: string, input?: string, output?: string | (string|number|[string, number[]])[],
 *   run?: string[], gates?: string[], warnings?: string[], tags?: string[], cell?: Object<string, string>, group?: string,
 *   rubric?: string, judge?: string, place?: string, cost?: number, usage?: string, vacuous?: boolean,
 *   votes?: {judge: string, score?: number, verdict?: string}[], path?: Step[], entries?: Entry[], costs?: number[],
 *   calls?: Call[], change?: string, before?: Row, people?: Object<string, string>,
 *   number: number, cells: Map<number, Entry>, disagrees: boolean, words?: {id: string, text: string, reason: string}}} Row
 * @typedef {{judge?: string, about?: string, messages?: [string, string][], reply?: string, end?: string, more?: string}} Call
 * @typedef {{id: string, text: string, answer?: string, weight: number}} Criterion
 * @typedef {{criteria: Criterion[], rows: Row[], names?: string[], judges?: boolean}} Data
 */

const $ = (/** @type {string} */ id) => document.getElementById(id);

/**
 * Make an element: "button.chip" names the tag and its classes; `on` holds what events do; children are nodes or texts.
 * @param {string} name
 * @param {Object<string, any>} attributes
 * @returns {HTMLElement}
 */
function h(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key === "on") for (const [event, action] of Object.entries(value)) element.addEventListener(event, action);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false && child !== ""));
  return element;
}

/** An element with a text of a stranger: it has its own writing direction. */
const t = (/** @type {string} */ name, /** @type {string} */ words, attributes = {}) => h(`${name}.t`, attributes, words);

/** The sign, the word and the colour of each look: never a colour alone. */
const LOOKS = {
  met: ["✓", "met", "passed"],
  part: ["~", "met in part", "passed"],
  low: ["~", "met in part, too little", "ungraded"],
  unmet: ["✕", "not met", "failed"],
  open: ["!", "unjudged", "open"],
  unsure: ["?", "cannot tell", "open"],
  none: ["–", "does not apply", "none"],
};
const ORDER = ["failed", "ungraded", "deferred", "passed"];
const isFailing = (/** @type {Row} */ row) => row.status !== "passed";

/** The answer in a word or two, for a cell: the word of a level or a choice, yes or no, else a number. */
function answerOf(/** @type {Entry} */ entry) {
  if (entry.score === undefined) return entry.word || LOOKS[entry.look][1];
  if (entry.level) return entry.value ? `${entry.value}: ${entry.level}` : entry.level;
  if (entry.value && Number(entry.value) !== entry.score) return entry.value;
  return entry.look === "met" || entry.look === "unmet" ? LOOKS[entry.look][1] : entry.figure || entry.score.toFixed(2);
}

/** True if the votes of an entry lie on both sides of the middle. */
function disagrees(/** @type {Entry} */ entry) {
  const known = (entry.votes || []).map((vote) => vote.score).filter((score) => score !== undefined);
  return known.length > 1 && Math.min(...known) < 0.5 && Math.max(...known) >= 0.5;
}

/** Return what an element holds as JSON, which may be compressed. @returns {Promise<any>} */
async function unpacked(/** @type {HTMLElement} */ block) {
  if (!block.dataset.packed) return JSON.parse(block.textContent);
  const packed = atob(block.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let n = 0; n < packed.length; n++) bytes[n] = packed.charCodeAt(n);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

/** Add to each row what the page asks of it again and again. */
function prepare(/** @type {Data} */ data) {
  for (const [number, row] of data.rows.entries()) {
    row.number = number;
    row.cells = new Map((row.entries || []).map((entry) => [entry.of, entry]));
    const votes = new Set((row.votes || []).map((vote) => vote.verdict).filter((verdict) => verdict && verdict !== "ungraded"));
    row.disagrees = votes.size > 1 || (row.entries || []).some(disagrees);
    if (row.before) {
      row.before.cells = new Map((row.before.entries || []).map((entry) => [entry.of, entry]));
      if (data.judges) row.disagrees = row.before.status !== row.status;
    }
  }
  return data;
}

/** The whole text of an output. */
const plain = (/** @type {Row["output"]} */ output) =>
  typeof output === "string" ? output
    : (output || []).map((piece) => (typeof piece === "string" ? piece : typeof piece === "number" ? `\n[… ${piece.toLocaleString("en")} characters …]\n` : piece[0])).join("");
