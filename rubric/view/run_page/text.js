/*
 * Texts as they are read: quotes marked, Markdown as nodes, two texts with their differences.
 * Nothing is made from markup: a tag in a text is shown as the text that it is, and a link is its words and its address.
 */

const START = "\ue000", MIDDLE = "\ue001", END = "\ue002"; // around a quote: START numbers MIDDLE words END
const bare = (/** @type {string} */ text) => text.replace(/\ue000[\d,]*\ue001|\ue002/g, "");
const withoutSigns = (/** @type {string} */ text) => text.replace(/[\ue000-\ue002]/g, "\ufffd");

/** Return an output with signs around its quotes. @param {Row["output"]} output */
function signed(output) {
  if (typeof output === "string") return withoutSigns(output);
  return (output || []).map((piece) => (typeof piece === "string" ? withoutSigns(piece)
    : typeof piece === "number" ? `\n[… ${piece.toLocaleString("en")} characters are left out here …]\n`
      : `${START}${piece[1].join(",")}${MIDDLE}${withoutSigns(piece[0])}${END}`)).join("");
}

/** Makes nodes of a text with signs: a quote that goes on over several nodes is marked in each. */
class Marker {
  constructor() {
    this.isOpen = false;
    this.numbers = [];
  }

  /** @returns {Node[]} */
  nodes(/** @type {string} */ text) {
    const made = [];
    for (const part of text.split(/(\ue000[\d,]*\ue001|\ue002)/)) {
      if (part.startsWith(START)) {
        this.isOpen = true;
        this.numbers = part.slice(1, -1).split(",").filter(Boolean);
      } else if (part === END) this.isOpen = false;
      else if (part && this.isOpen) {
        const places = this.numbers.map((n) => h("button.place", { type: "button", "data-mark": n, "aria-label": `quote ${n}: back to its criterion` }, n));
        made.push(h("mark", {}, part, places));
        this.numbers = [];
      } else if (part) made.push(document.createTextNode(part));
    }
    return made;
  }
}

/** Return a text as it was written. */
const raw = (/** @type {string} */ text) => h("pre.text.as-written", { dir: "auto" }, new Marker().nodes(text));

const looksLikeMarkdown = (/** @type {string} */ text) =>
  /^\s{0,3}(#{1,6} |[-*+] \S|\d{1,3}[.)] \S|```|> |\|.*\|\s*$)/m.test(bare(text)) || /\*\*\S[^*]*\*\*|`[^`\n]+`/.test(text);

/** Return Markdown as nodes: headings, lists, quotations, tables, code, emphasis. All else stays as it was written. */
function markdown(/** @type {string} */ text) {
  const marker = new Marker();
  const root = h("div.text.markdown", { dir: "auto" });
  const lines = text.split("\n");
  let n = 0;
  const is = (/** @type {RegExp} */ form) => n < lines.length && form.test(bare(lines[n]));
  const BLOCK = /^\s{0,3}(#{1,6} |[-*+] |\d{1,3}[.)] |```|~~~|> ?|(\*\s*){3,}$|(-\s*){3,}$)|^\s*$/;
  while (n < lines.length) {
    if (is(/^\s*$/)) {
      marker.nodes(lines[n++]);
    } else if (is(/^\s{0,3}(```|~~~)/)) {
      const code = h("pre.code");
      marker.nodes(lines[n++]);
      while (n < lines.length && !is(/^\s{0,3}(```|~~~)\s*$/)) code.append(...marker.nodes(lines[n++]), "\n");
      if (n < lines.length) marker.nodes(lines[n++]);
      root.append(code);
    } else if (is(/^\s{0,3}((\*\s*){3,}|(-\s*){3,}|(_\s*){3,})$/)) {
      marker.nodes(lines[n++]);
      root.append(h("hr"));
    } else if (is(/^\s{0,3}#{1,6} /)) {
      const level = bare(lines[n]).trim().indexOf(" ");
      root.append(h("p.heading", { "data-level": Math.min(level, 4) }, inline(dropped(lines[n++], /^\s*#{1,6} /), marker)));
    } else if (is(/^\s{0,3}>/)) {
      const quoted = h("blockquote");
      while (is(/^\s{0,3}>/)) quoted.append(h("p", {}, inline(dropped(lines[n++], /^\s*> ?/), marker)));
      root.append(quoted);
    } else if (is(/^\s*([-*+]|\d{1,3}[.)]) /)) {
      root.append(listAt());
    } else if (is(/^\s*\|.*\|\s*$/) && n + 1 < lines.length && /^\s*\|[\s:|-]+\|\s*$/.test(bare(lines[n + 1]))) {
      const table = h("table.grid");
      let name = "th";
      while (is(/^\s*\|.*\|\s*$/)) {
        const cells = lines[n++].trim().replace(/^\|/, "").replace(/\|$/, "").split("|");
        table.append(h("tr", {}, cells.map((cell) => h(name, {}, inline(cell.trim(), marker)))));
        if (name === "th") marker.nodes(lines[n++]);
        name = "td";
      }
      root.append(h("div.scroll", {}, table));
    } else {
      const words = [lines[n++]];
      while (n < lines.length && !is(BLOCK)) words.push(lines[n++]);
      root.append(h("p", {}, inline(words.join("\n"), marker)));
    }
  }
  return root;

  function listAt() {
    const isNumbered = is(/^\s*\d/), list = h(isNumbered ? "ol" : "ul");
    const first = indentOf(lines[n]);
    if (isNumbered) list.setAttribute("start", String(parseInt(bare(lines[n]).trim(), 10)));
    while (is(/^\s*([-*+]|\d{1,3}[.)]) /) && indentOf(lines[n]) >= first) {
      if (indentOf(lines[n]) > first + 1 && list.lastChild) list.lastChild.append(listAt());
      else list.append(h("li", {}, inline(dropped(lines[n++], /^\s*([-*+]|\d{1,3}[.)]) /), marker)));
      while (is(/^\s+\S/) && !is(/^\s*([-*+]|\d{1,3}[.)]) /) && !is(/^\s*(```|~~~)/)) list.lastChild.append("\n", ...inline(lines[n++].trim(), marker));
    }
    return list;
  }
}

const indentOf = (/** @type {string} */ line) => bare(line).length - bare(line).trimStart().length;

/** Drop what a form takes at the start of a line, but no sign of a quote. */
function dropped(/** @type {string} */ line, /** @type {RegExp} */ form) {
  let left = (form.exec(bare(line)) || [""])[0].length, at = 0, signs = "";
  while (left > 0 && at < line.length) {
    const sign = /^(\ue000[\d,]*\ue001|\ue002)/.exec(line.slice(at));
    if (sign) signs += sign[0];
    else left--;
    at += sign ? sign[0].length : 1;
  }
  return signs + line.slice(at);
}

/** Return a stretch of Markdown as nodes: code, bold, italics; a link is its words with its address behind. */
function inline(/** @type {string} */ text, /** @type {Marker} */ marker) {
  const made = [];
  const FORM = /(`+)([^`]+?)\1|\*\*(\S(?:[^*]*\S)?)\*\*|(?<![\w*])[*_](\S(?:[^*_\n]*\S)?)[*_](?![\w*])|!?\[([^\]\n]*)\]\(([^()\s]*)\)/g;
  let at = 0;
  for (const found of text.matchAll(FORM)) {
    made.push(...marker.nodes(text.slice(at, found.index)));
    const [all, , code, bold, italic, words, address] = found;
    if (code) made.push(h("code", {}, marker.nodes(code)));
    else if (bold) made.push(h("strong", {}, marker.nodes(bold)));
    else if (italic) made.push(h("em", {}, marker.nodes(italic)));
    else made.push(...marker.nodes(words), h("span.soft", {}, " (", marker.nodes(address), ")"));
    at = found.index + all.length;
  }
  made.push(...marker.nodes(text.slice(at)));
  return made;
}

// -- two texts ------------------------------------------------------------------------------------------

const LONGEST_DIFFERENCE = 3000; // words of one text: the table of the comparison grows with the square

/** Return what two texts share and do not, word by word. @returns {[string, string][]} pairs of "same", "old" or "new" and words */
function differences(/** @type {string} */ old, /** @type {string} */ now) {
  const split = (/** @type {string} */ text) => text.match(/\s+|[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu) || [];
  const a = split(old), b = split(now);
  let start = 0, end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const mine = a.slice(start, a.length - end), theirs = b.slice(start, b.length - end);
  /** @type {[string, string][]} */
  const found = [["same", a.slice(0, start).join("")]];
  if (mine.length > LONGEST_DIFFERENCE || theirs.length > LONGEST_DIFFERENCE) found.push(["old", mine.join("")], ["new", theirs.join("")]);
  else found.push(...common(mine, theirs));
  found.push(["same", a.slice(a.length - end).join("")]);
  return found.filter(([, words]) => words);
}

/** The longest common subsequence of words, as pairs. @returns {[string, string][]} */
function common(/** @type {string[]} */ a, /** @type {string[]} */ b) {
  const wide = b.length + 1, lengths = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * wide + j] = a[i] === b[j] ? lengths[(i + 1) * wide + j + 1] + 1 : Math.max(lengths[(i + 1) * wide + j], lengths[i * wide + j + 1]);
  const found = [];
  const add = (/** @type {string} */ kind, /** @type {string} */ word) => {
    const last = found[found.length - 1];
    if (last && last[0] === kind) last[1] += word;
    else found.push([kind, word]);
  };
  let i = 0, j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) add("same", (j++, a[i++]));
    else if (j >= b.length || (i < a.length && lengths[(i + 1) * wide + j] >= lengths[i * wide + j + 1])) add("old", a[i++]);
    else add("new", b[j++]);
  }
  return found;
}
