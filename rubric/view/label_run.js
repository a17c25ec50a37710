/*
 * Labels in place, on the page of a kept run that a server shows: agree or disagree with the verdict, with a reason.
 * Each is sent at once, and kept as the command `label` keeps them. `RUN` is the run, `LABELS` what was said before.
 */

const passes = (/** @type {Row} */ row) => row.status === "passed";

async function label(/** @type {Row} */ row, /** @type {string | null} */ value, reason = "") {
  const state = $("label-state");
  try {
    const answer = await fetch(location.pathname, {
      method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ run: RUN, name: row.id, rater: "", criterion: "", value, reason, judge_seen: true }),
    });
    if (!answer.ok) throw new Error(await answer.text());
    if (value === null) delete LABELS[row.id]; else LABELS[row.id] = [value, reason];
    page.drawPanel();
    $("label-state").textContent = value === null ? "taken back" : "saved";
  } catch (problem) {
    state.textContent = `not saved: ${problem.message}. Is the command still running?`;
  }
}

sections.push((row) => {
  const [said, why] = LABELS[row.id] || ["", ""];
  const reason = h("input", { type: "text", id: "label-reason", maxlength: "10000", placeholder: "why (optional)", "aria-label": "Reason for your label" });
  reason.value = why;
  const button = (key, words, value) => h("button.button", { type: "button", "data-label": value, "aria-pressed": String(said === value),
    on: { click: () => label(row, said === value ? null : value, reason.value) } }, h("kbd", {}, key), ` ${words}${said === value ? " ✓" : ""}`);
  const [agree, disagree] = passes(row) ? ["pass", "fail"] : ["fail", "pass"];
  const words = row.status === "ungraded" ? ["It fails", "It passes"] : [`Agree: ${agree}`, `Disagree: ${disagree}`];
  return [section("Your label", h("p.label", {}, button("a", words[0], agree), " ", button("d", words[1], disagree), " ", reason),
    h("p.soft", { id: "label-state", role: "status", "aria-live": "polite" }, said ? `labelled: ${said}` : "not labelled"))];
});

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea") || page.state.row < 0) return;
  const buttons = document.querySelectorAll("[data-label]");
  const button = { a: buttons[0], d: buttons[1] }[event.key];
  if (!button) return;
  event.preventDefault();
  if (button.getAttribute("aria-pressed") !== "true") button.click();
});
KEYS.push(["a", "agree with the verdict"], ["d", "disagree"]);
