"use strict";
/*
 * The page on which people label. It copies what is in <template> elements and makes no markup of any text.
 * An answer is a row [name, rater, criterion, value, reason, judgeSeen]: value "" is "cannot tell", null is "taken back".
 * Served, each answer is sent to the server, which keeps the file. In a file of its own, the browser keeps each answer
 * under a name of its own, so that two tabs do not overwrite each other, and the page writes the CSV.
 */

const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const isServed = data.mode === "server";
const fields = data.questions.map((_, n) => $(`q${n}`));
const answers = new Map();
const looked = new Set(); // the items whose verdict by the judge this rater has seen
let rater = "", place = 0, current = 0, typed = "", timer = 0;

const idOf = (name, who, criterion) => JSON.stringify([name, who, criterion]);
const answerOf = (n, question) => answers.get(idOf(data.items[n].name, rater, data.questions[question].criterion));
const asked = (n) => data.questions.map((_, q) => q).filter((q) => !data.items[n].skipped.includes(q));
const isDone = (n) => asked(n).every((q) => answerOf(n, q));

// -- keeping answers ------------------------------------------------------------------------------------

const PREFIX = `rubric-label ${data.id} `;
const queue = [];
let isSending = false;

function say(words, isBad = false) {
  $("state").textContent = words;
  $("state").classList.toggle("failed", isBad);
}

function keep(row) {
  const id = idOf(row[0], row[1], row[2]);
  if (row[3] === null) answers.delete(id); else answers.set(id, row);
  if (isServed) {
    queue.push(row);
    send();
    return;
  }
  try {
    localStorage.setItem(PREFIX + id, JSON.stringify(row)); // also null: it was on the page, and was taken back
    say("kept in this browser");
  } catch {
    say("this browser keeps nothing: export before you close the page", true);
  }
}

async function send() {
  if (isSending) return;
  isSending = true;
  while (queue.length) {
    const [name, who, criterion, value, reason, seen] = queue[0];
    try {
      const answer = await fetch(location.pathname, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ name, rater: who, criterion, value, reason, judge_seen: seen }),
      });
      if (!answer.ok) throw new Error(await answer.text());
      queue.shift();
      say("saved");
    } catch (problem) {
      say(`not saved, trying again: ${problem.message}. Is the command still running?`, true);
      await new Promise((resolve) => setTimeout(resolve, 2000));
    }
  }
  isSending = false;
}

function take(row) {
  const id = idOf(row[0], row[1], row[2]);
  if (row[3] === null) answers.delete(id); else answers.set(id, row);
}

function recall() {
  data.answers.forEach(take);
  if (isServed) return;
  try {
    for (let n = 0; n < localStorage.length; n++) {
      const name = localStorage.key(n);
      if (name.startsWith(PREFIX)) take(JSON.parse(localStorage.getItem(name)));
    }
  } catch { /* no storage: `keep` says so */ }
}

// -- the file of labels ---------------------------------------------------------------------------------

function csv() {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  // A spreadsheet would run a text that begins so: `csv_text` in row_files.py.
  const isFormula = (value) => /^'*[=+\-@\t\r\n＝＋－＠]/.test(value) && (value.trim() === "" || isNaN(value));
  const cell = (value) => quoted(isFormula(value) ? `'${value}` : value);
  const places = new Map(data.items.map((item, n) => [item.name, n]));
  const criteria = data.questions.map((question) => question.criterion);
  const order = ([name, who, criterion]) => [places.get(name) ?? Infinity, who, criteria.indexOf(criterion)];
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  const rows = [...answers.values()].sort((a, b) => {
    const [x, y] = [order(a), order(b)];
    return compare(x[0], y[0]) || compare(x[1], y[1]) || compare(x[2], y[2]);
  });
  const lines = [[data.by, "rater", "criterion", "value", "reason", "judge_seen"]];
  for (const [name, who, criterion, value, reason, seen] of rows) {
    lines.push([name, who, criterion, value, reason, seen ? "yes" : ""]);
  }
  return lines.map((line) => line.map(cell).join(",") + "\n").join("");
}

function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
  link.download = "labels.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say("exported; send labels.csv back");
}

// -- showing --------------------------------------------------------------------------------------------

function show(n) {
  flush();
  place = Math.max(0, Math.min(n, data.items.length - 1));
  $("stage").replaceChildren($(`item-${place}`).content.cloneNode(true));
  $("verdict").hidden = true;
  $("verdict").replaceChildren();
  const todo = asked(place);
  fields.forEach((field, q) => {
    field.hidden = !todo.includes(q);
    field.classList.remove("is-writing");
    field.querySelector(".reason").value = answerOf(place, q)?.[4] ?? "";
  });
  current = todo.find((q) => !answerOf(place, q)) ?? todo[0] ?? 0;
  draw();
  document.activeElement?.blur();
  scrollTo(0, 0);
}

function draw() {
  fields.forEach((field, q) => {
    const answer = answerOf(place, q);
    field.classList.toggle("done", Boolean(answer));
    field.classList.toggle("now", q === current);
    field.classList.toggle("has-reason", Boolean(field.querySelector(".reason").value));
    for (const option of field.querySelectorAll(".option")) {
      option.setAttribute("aria-checked", String(Boolean(answer) && answer[3] === valueOf(q, option)));
    }
    const number = field.querySelector(".number");
    if (number && number !== document.activeElement) number.value = answer?.[3] ?? "";
  });
  const done = data.items.filter((_, n) => isDone(n)).length;
  $("where").textContent = `Candidate ${place + 1} of ${data.items.length}`;
  $("count").textContent = `${done} labelled by ${rater}`;
  $("progress").max = data.items.length;
  $("progress").value = done;
}

function valueOf(q, option) {
  return option.classList.contains("unsure") ? "" : data.questions[q].options[option.dataset.n][0];
}

function point(q) {
  current = q;
  draw();
  fields[q].scrollIntoView({ block: "nearest" });
}

// -- answering ------------------------------------------------------------------------------------------

function answer(q, value) {
  const item = data.items[place], field = fields[q];
  keep([item.name, rater, data.questions[q].criterion, value, field.querySelector(".reason").value, looked.has(place)]);
  const todo = asked(place);
  const next = todo.find((other) => other > q && !answerOf(place, other)) ?? todo.find((o) => !answerOf(place, o));
  point(value !== null && next !== undefined ? next : q);
  if (isDone(place)) say(`${isServed ? "" : "kept; "}all answered: Enter for the next one`);
}

/** Choose by what is typed: 1 waits a moment where 10 is an answer too. */
function type(key) {
  const options = data.questions[current].options;
  clearTimeout(timer);
  typed += key;
  if (!options.some(([, own]) => own.startsWith(typed))) typed = key;
  const exact = options.find(([, own]) => own === typed);
  if (options.some(([, own]) => own.startsWith(typed) && own !== typed)) {
    timer = setTimeout(flush, 700);
    return true;
  }
  typed = "";
  if (exact) answer(current, exact[0]);
  return Boolean(exact);
}

/** Choose what is typed, without waiting for more. */
function flush() {
  clearTimeout(timer);
  const exact = data.questions[current].options.find(([, own]) => typed && own === typed);
  typed = "";
  if (exact) answer(current, exact[0]);
}

function keepReason(q) {
  const said = answerOf(place, q), text = fields[q].querySelector(".reason").value;
  if (said && said[4] !== text) keep([said[0], said[1], said[2], said[3], text, said[5]]);
  else if (!said && text) say("choose an answer, and the reason is kept with it");
}

function write(q) {
  fields[q].classList.add("is-writing");
  fields[q].querySelector(".reason").focus();
}

function lookAtJudge() {
  const found = $(`judge-${place}`);
  if (!$("judge")) return;
  looked.add(place);
  $("verdict").replaceChildren(found ? found.content.cloneNode(true) : "No judge has graded this candidate.");
  $("verdict").hidden = !$("verdict").hidden;
  if (!$("verdict").hidden) $("verdict").scrollIntoView({ block: "nearest" });
}

function step(by) {
  flush();
  const todo = asked(place);
  point(todo[(todo.indexOf(current) + by + todo.length) % todo.length] ?? current);
}

function open() {
  const first = data.items.findIndex((_, n) => !isDone(n));
  show(first < 0 ? data.items.length - 1 : first);
  if (first < 0) say(isServed ? "All are labelled. You may close this page." : "All are labelled: export the labels.");
}

const COMMANDS = {
  ArrowDown: () => step(1),
  ArrowUp: () => step(-1),
  ArrowRight: () => show(place + 1),
  ArrowLeft: () => show(place - 1),
  Enter: () => (flush(), place + 1 < data.items.length ? show(place + 1) : open()),
  Backspace: () => answer(current, null),
  c: () => answer(current, ""),
  j: lookAtJudge,
  r: () => write(current),
  u: open,
};

function pressed(event) {
  if ($("desk").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const at = event.target, isText = at.matches("textarea, input");
  if (isText) {
    if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
      at.blur();
      event.preventDefault();
    }
    return;
  }
  if (event.key === "Enter" && at.matches("button, summary")) return; // it presses that button
  const number = fields[current].querySelector(".number");
  if (number && /^[-0-9]$/.test(event.key)) {
    number.value = "";
    number.focus(); // the key is typed into it
    return;
  }
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if ((key.length === 1 && type(key)) || (COMMANDS[key] && (COMMANDS[key](), true))) event.preventDefault();
}

function begin(name) {
  rater = name.trim();
  if (!rater) return;
  history.replaceState(null, "", `#${encodeURIComponent(rater)}`);
  for (const [n, item] of data.items.entries()) {
    if ([...answers.values()].some((row) => row[0] === item.name && row[1] === rater && row[5])) looked.add(n);
  }
  $("start").hidden = true;
  $("desk").hidden = false;
  say("");
  open();
}

// -- the beginning --------------------------------------------------------------------------------------

recall();
for (const name of new Set([...answers.values()].map((row) => row[1]).filter(Boolean))) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button";
  button.textContent = name;
  button.addEventListener("click", () => begin(name));
  $("raters").append(button);
}
$("name").addEventListener("submit", (event) => (event.preventDefault(), begin($("rater").value)));
fields.forEach((field, q) => {
  field.addEventListener("focusin", () => q !== current && point(q));
  for (const option of field.querySelectorAll(".option")) {
    option.addEventListener("click", () => (answer(q, valueOf(q, option)), option.blur()));
  }
  field.querySelector(".why-button").addEventListener("click", () => write(q));
  field.querySelector(".reason").addEventListener("change", () => (keepReason(q), draw()));
  const number = field.querySelector(".number");
  number?.addEventListener("change", () => {
    if (number.value && number.checkValidity()) answer(q, String(Number(number.value)));
    else if (number.value) say(`a whole number from ${number.min} to ${number.max}`, true);
  });
});
$("back").addEventListener("click", () => show(place - 1));
$("next").addEventListener("click", COMMANDS.Enter);
$("open").addEventListener("click", open);
$("judge")?.addEventListener("click", lookAtJudge);
$("export")?.addEventListener("click", save);
document.addEventListener("keydown", pressed);
addEventListener("storage", (event) => {
  if (isServed || !event.key?.startsWith(PREFIX) || !event.newValue) return;
  take(JSON.parse(event.newValue));
  if (rater) draw();
});
addEventListener("beforeunload", (event) => queue.length && event.preventDefault());
if (location.hash.length > 1) begin(decodeURIComponent(location.hash.slice(1)));
else $("rater").focus();
