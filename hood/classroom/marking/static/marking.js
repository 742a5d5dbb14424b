// One question: shows its answers one after the other and saves marks, by keyboard.
"use strict";

const at = (id) => document.getElementById(id);
const data = JSON.parse(at("data").textContent);
const el = {};
for (const id of ["progress", "row", "who", "state", "words", "cut", "notebook", "score", "remark",
                  "remarks", "conflict", "said", "names", "help", "keys", "blank", "blanks", "blank-yes",
                  "blank-no", "shortcuts"]) el[id] = at(id);
const boxes = [...document.querySelectorAll("[data-box]")];
const inputs = boxes.map((box) => box.querySelector("input"));
const scoreRow = el.score.parentElement;
const LETTERS = "abcdefgh";

let all = !data.share; // otherwise only the marker's share
let answers = chosen();
const remarks = [...data.remarks]; // a remark keeps its key as long as the page is open
const FRESH = 15000; // milliseconds for which a prefetched answer counts as current
const fetched = new Map(); // by grade: a promise of an answer and its mark, and the time of the request
let here = 0;
let seen = null; // the server's state of the answer shown
let draft = null; // the mark as it is on the page
let names = null;
let conflict = null;

function chosen() {
  return all ? data.answers : data.answers.filter((one) => one.own);
}

async function ask(method, path, body) {
  const reply = await fetch(data.base + "api/" + path, {
    method, cache: "no-store", credentials: "same-origin",
    headers: {"Content-Type": "application/json", "X-XSRFToken": data.xsrf},
    body: body && JSON.stringify(body),
  });
  const found = await reply.json().catch(() => ({}));
  if (!reply.ok && reply.status !== 409) {
    throw new Error(found.message || `the server answered ${reply.status}`);
  }
  return {found, stale: reply.status === 409};
}

function get(index) {
  const one = answers[index];
  if (!one) return null;
  const known = fetched.get(one.grade);
  if (known && performance.now() - known.asked < FRESH) return known.promise;
  const promise = ask("GET", "answer/" + one.grade).then((reply) => reply.found);
  promise.catch(() => fetched.delete(one.grade));
  fetched.set(one.grade, {promise, asked: performance.now()});
  return promise;
}

const markOf = (shown) => ({
  score: shown.mark.score, remark: shown.mark.remark, boxes: [...shown.boxes],
});
const same = (one, other) => one.score === other.score && String(one.boxes) === String(other.boxes)
  && one.remark.trim() === other.remark.trim();
const isDirty = () => draft !== null && !same(draft, markOf(seen));
const lines = (text) => text.split("\n").map((line) => line.trim()).filter(Boolean);
const number = (value) => String(Math.round(value * 1000) / 1000);
const offered = (score) => score === null ? "no mark" : `${number(score)} of ${number(data.most)}`;

async function show(index) {
  here = index;
  conflict = null;
  seen = draft = null;
  paint();
  try {
    const shown = await get(index);
    if (here !== index) return;
    take(shown);
    for (const next of [index + 1, index + 2, waiting(index)]) get(next)?.catch(() => {});
  } catch (error) {
    if (here === index) say(error.message);
  }
}

// Show the server's state of the open answer.
function take(shown) {
  seen = {...seen, ...shown};
  fetched.delete(seen.grade); // before it is opened again, somebody else may change it
  draft = markOf(seen);
  const one = answers[here];
  one.state = seen.state;
  for (const line of lines(seen.mark.remark)) if (!remarks.includes(line)) remarks.push(line);
  paint(true);
}

function paint(withAnswer = false) {
  const one = answers[here];
  const left = answers.filter((other) => other.state !== "marked").length;
  el.progress.textContent = answers.length === 0 ? `Nobody ${all ? "" : "of your share "}has answered yet.`
    : `${answers.length - left} of ${answers.length} marked` + (left ? `, ${left} to go.` : ".");
  if (data.share) {
    const others = data.answers.filter((other) => !other.own && other.state !== "marked").length;
    at("share").textContent = all ? "You see the answers of all sections."
      : `You see ${data.share}, and learners who have no grader. Other answers to mark: ${others}.`;
    at("whole").textContent = all ? "show my share" : "show all";
  }
  [...el.row.children].forEach((dot, index) => {
    dot.className = answers[index].state;
    dot.toggleAttribute("aria-current", index === here);
    dot.title = `${index + 1}: ${calls(answers[index])}, ${STATES[answers[index].state]}`;
    dot.setAttribute("aria-label", dot.title);
  });
  for (const side of document.querySelectorAll(".sides > *")) side.hidden = !one;
  if (!one) return;
  el.who.textContent = `${here + 1} of ${answers.length} · ${calls(one)}`;
  if (!seen) {
    el.words.textContent = "…";
    el.state.textContent = el.cut.textContent = "";
  } else if (withAnswer) {
    el.words.className = seen.problem ? "words none" : "words";
    if (seen.problem) el.words.textContent = seen.problem;
    else el.words.innerHTML = seen.html; // made harmless by the server
    for (const link of el.words.querySelectorAll("a[href]:not([href^='#'])")) {
      link.target = "_blank";
      link.rel = "noopener noreferrer";
    }
    el.cut.textContent = seen.cut;
    el.notebook.parentElement.hidden = !seen.notebook; // where there is no formgrader
    el.notebook.href = seen.notebook;
    el.state.textContent = story(seen);
  }
  paintMark();
}

const STATES = {unmarked: "not marked", marked: "marked", again: "graded again since it was marked"};
const calls = (one) => names?.[one.grade] ?? one.pseudonym;

// Describe a mark in a sentence or two.
function story(shown) {
  const gave = shown.by ? `${shown.by} gave` : "It has";
  const when = shown.at ? `, ${new Date(shown.at).toLocaleString()}` : "";
  const has = shown.mark.score === null ? "" : `${gave} ${offered(shown.mark.score)}${when}.`;
  const extra = shown.mark.extra ? ` Extra credit: ${number(shown.mark.extra)}.` : "";
  return ({
    changed: "Changed since it was marked. ",
    same: "Handed in or graded again; this answer is the same as when it was marked. ",
    unknown: "Handed in or graded again since it was marked. ",
  }[shown.since] || "") + has + extra;
}

function paintMark() {
  const mark = draft || {score: null, remark: "", boxes: []};
  if (document.activeElement !== el.score) el.score.value = mark.score === null ? "" : number(mark.score);
  if (document.activeElement !== el.remark) el.remark.value = mark.remark;
  scoreRow.classList.toggle("off", Number.isNaN(mark.score) || mark.score > data.most || mark.score < 0);
  boxes.forEach((box, index) => {
    inputs[index].checked = mark.boxes.includes(index);
    box.classList.toggle("on", mark.boxes.includes(index));
  });
  const given = lines(mark.remark);
  const held = [...el.remarks.children].findIndex((item) => item.contains(document.activeElement));
  el.remarks.replaceChildren(...remarks.map((text, index) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    if (LETTERS[index]) {
      const key = document.createElement("kbd");
      key.textContent = LETTERS[index];
      button.append(key, " ");
    }
    button.append(text);
    button.setAttribute("aria-pressed", given.includes(text));
    button.addEventListener("click", (event) => { leave(event, button); give(index); });
    item.append(button);
    return item;
  }));
  el.remarks.children[held]?.firstChild.focus();
  el.conflict.hidden = !conflict;
}

// After a click with the mouse, Enter is again a key of the page, and does not press the button a second time.
const leave = (event, button) => { if (event.detail) button.blur(); };

const say = (text) => { el.said.textContent = text.slice(0, 1).toUpperCase() + text.slice(1); };

function tick(index) {
  if (!draft || !boxes[index]) return;
  const ticked = draft.boxes.includes(index)
    ? draft.boxes.filter((one) => one !== index) : [...draft.boxes, index].sort((a, b) => a - b);
  draft.boxes = ticked;
  if (data.steps.length) draft.score = ticked.length ? data.steps[ticked.length] : null;
  else if (data.points.length) {
    const sum = ticked.reduce((total, one) => total + data.points[one], 0);
    draft.score = ticked.length ? Math.min(data.most, Math.round(sum * 1000) / 1000) : null;
  }
  paintMark();
}

function nothing() {
  if (!draft) return;
  draft.boxes = [];
  draft.score = 0;
  paintMark();
}

function give(index) {
  if (!draft || remarks[index] === undefined) return;
  const given = lines(draft.remark);
  const kept = given.filter((line) => line !== remarks[index]);
  draft.remark = (kept.length === given.length ? [...given, remarks[index]] : kept).join("\n");
  paintMark();
}

// Save the page's state; true if nothing is left to save.
async function save(version = seen?.version) {
  if (!draft || conflict) return !conflict;
  const wanted = {...draft, remark: draft.remark.trim(), version};
  if (Number.isNaN(wanted.score)) {
    say(`Expected points from 0 to ${number(data.most)}.`);
    return false;
  }
  try {
    const {found, stale} = await ask("PUT", "answer/" + seen.grade, wanted);
    if (stale) {
      meanwhile(found);
      return false;
    }
    say("");
    take(found);
    return true;
  } catch (error) {
    say(`Not saved: ${error.message}.`);
    return false;
  }
}

// Somebody else changed the mark or the answer: say who and how, and let the marker choose.
function meanwhile(found) {
  const mine = draft;
  const other = found.html !== seen.html || found.problem !== seen.problem;
  const who = found.by || "Somebody, in formgrader or by grading again,";
  seen = {...seen, ...found};
  answers[here].state = seen.state;
  conflict = {mine};
  const text = document.createElement("p");
  const remark = found.mark.remark ? `, with “${found.mark.remark}”` : "";
  text.textContent = other
    ? `The answer itself has changed since you opened it: read it again. It has ${offered(found.mark.score)}.`
    : `${who} left ${offered(found.mark.score)}${remark} while you had this answer open. Your mark, not saved: `
      + `${offered(mine.score)}${mine.remark ? `, with “${mine.remark}”` : ""}.`;
  const buttons = [["t", "keep theirs"], ["y", "save mine"]].map(([key, does]) => {
    const button = document.createElement("button");
    const shown = document.createElement("kbd");
    shown.textContent = key;
    button.append(shown, ` ${does}`);
    button.addEventListener("click", () => press(key));
    return button;
  });
  el.conflict.replaceChildren(text, ...buttons);
  paint(true);
  el.conflict.scrollIntoView({block: "nearest"});
}

async function settle(mine) {
  const before = conflict;
  conflict = null;
  draft = mine ? before.mine : markOf(seen);
  if (mine) await save();
  else paint(true);
}

async function undo() {
  if (conflict) return;
  if (isDirty()) {
    draft = markOf(seen);
    paintMark();
    say("Dropped your unsaved changes.");
    return;
  }
  try {
    const {found, stale} = await ask("POST", "undo/" + data.question);
    for (const one of data.answers) {
      if (!found.others.includes(one.grade)) continue;
      one.state = "unmarked";
      fetched.delete(one.grade);
    }
    if (!answers.some((one) => one.grade === found.grade)) widen(true);
    const index = answers.findIndex((one) => one.grade === found.grade);
    fetched.delete(found.grade);
    if (index >= 0) {
      answers[index].state = found.state;
      await show(index);
    }
    say(stale ? "Your last mark was not undone: this answer has a newer mark."
      : found.others.length ? `Undone: ${found.others.length + 1} blank answers wait for a mark again.`
      : `Undone: the answer has ${offered(found.mark.score)} again.`);
  } catch (error) {
    say(`${error.message}.`);
  }
}

const waiting = (from) => {
  for (let step = 1; step <= answers.length; step++) {
    const index = (from + step) % answers.length;
    if (index !== from && answers[index].state !== "marked") return index;
  }
  return -1;
};

async function go(index) {
  if (isDirty() && !(await save())) return;
  if (conflict) return;
  if (index < 0 || index >= answers.length) {
    say(index < 0 ? "There is no other answer." : "This is the last answer.");
    return;
  }
  say("");
  await show(index);
  scrollTo(0, 0);
}

async function who() {
  try {
    names = names ? null : (await ask("GET", "names/" + data.question)).found;
    el.names.textContent = names ? "hide names" : "show names";
    paint();
  } catch (error) {
    say(`${error.message}.`);
  }
}

const several = (count) => count === 1 ? "1 blank answer" : `${count} blank answers`;

// Ask whether all listed blank answers that wait get no points; then give them.
async function blanks() {
  if (conflict || (isDirty() && !(await save()))) return;
  say("Looking for blank answers…");
  try {
    const {found} = await ask("GET", "blank/" + data.question);
    const listed = found.filter((grade) => answers.some((one) => one.grade === grade));
    say(listed.length ? "" : "No blank answer waits for a mark.");
    if (!listed.length) return;
    const left = answers.filter((one) => one.state !== "marked").length;
    el.blanks.textContent = `Answers that wait for a mark: ${left}. Blank answers among them: ${listed.length}.`
      + ` Give ${listed.length === 1 ? "this blank answer" : "each blank answer"} ${offered(0)} points?`;
    if (!(await agreed())) return;
    const {found: given} = await ask("POST", "blank/" + data.question, listed);
    for (const one of data.answers) {
      if (!given.includes(one.grade)) continue;
      one.state = "marked";
      fetched.delete(one.grade);
    }
    const next = waiting(here);
    await show(answers[here].state === "marked" && next >= 0 ? next : here);
    const others = listed.length - given.length;
    say(`${several(given.length)} got ${offered(0)} points; press u to undo this.`
      + (others ? ` ${others} changed meanwhile, and ${others === 1 ? "was" : "were"} not marked.` : ""));
  } catch (error) {
    say(`${error.message}.`);
  }
}

function agreed() {
  el.blank.showModal();
  return new Promise((resolve) => {
    let yes = false;
    el["blank-yes"].onclick = () => { yes = true; el.blank.close(); };
    el["blank-no"].onclick = () => el.blank.close();
    el.blank.onclose = () => resolve(yes);
  });
}

function widen(toAll) {
  all = toAll;
  answers = chosen();
  dots();
}

// Show all answers, or the answers of the share, and stay at the same answer if it is shown.
async function everybody() {
  if (!data.share || conflict || (isDirty() && !(await save()))) return;
  const grade = answers[here]?.grade;
  widen(!all);
  const index = answers.findIndex((one) => one.grade === grade);
  say("");
  if (answers.length) await show(index < 0 ? Math.max(first(), 0) : index);
  else {
    here = 0;
    seen = draft = null;
    paint();
  }
}

const KEYS = {
  j: () => go(here + 1), ArrowDown: () => go(here + 1),
  k: () => here && go(here - 1), ArrowUp: () => here && go(here - 1),
  n: () => go(waiting(here)),
  0: nothing,
  p: () => { el.score.focus(); el.score.select(); },
  Enter: () => el.remark.focus(),
  y: () => conflict ? settle(true) : seen?.mark.score === null ? say("The answer has no mark yet.") : save(),
  t: () => conflict && settle(false),
  u: undo,
  x: blanks,
  w: who,
  s: everybody,
  "?": () => el.help.open ? el.help.close() : el.help.showModal(),
};

// One action after the other: keys typed while a mark is saved act after the save.
const queue = [];
let busy = false;
async function run(action) {
  queue.push(action);
  if (busy) return;
  busy = true;
  try {
    while (queue.length) await queue.shift()();
  } finally {
    busy = false;
  }
}

const press = (key) => run(() => {
  if (/^[1-9]$/.test(key)) return tick(Number(key) - 1);
  if (LETTERS.includes(key)) return give(LETTERS.indexOf(key));
  return KEYS[key]();
});

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const field = event.target === el.score || event.target === el.remark;
  if (field) {
    const ends = event.key === "Escape" || (event.key === "Enter" && !event.shiftKey);
    if (!ends) return;
    event.preventDefault();
    event.target.blur();
    return;
  }
  if (el.blank.open || (el.help.open && event.key !== "?")) return;
  if (!el.shortcuts.checked && event.key.length === 1) return;
  const onControl = event.target.closest?.("button, summary, a, input");
  if (onControl && ["Enter", " "].includes(event.key)) return;
  const known = Object.hasOwn(KEYS, event.key) || /^[1-9]$/.test(event.key)
    || (event.key.length === 1 && LETTERS.includes(event.key));
  if (!known) return;
  event.preventDefault();
  press(event.key);
});
el.score.addEventListener("input", () => {
  if (!draft) return;
  const text = el.score.value.trim().replace(",", ".");
  draft.score = text === "" ? null : /^\d*\.?\d+$|^\d+\.$/.test(text) ? Number(text) : NaN;
  paintMark();
});
el.score.addEventListener("blur", paintMark);
el.remark.addEventListener("input", () => { if (draft) { draft.remark = el.remark.value; } });
el.remark.addEventListener("blur", paintMark);
boxes.forEach((box, index) => box.addEventListener("click", (event) => {
  if (event.target.closest("a, label")) return;
  tick(index);
  leave(event, inputs[index]);
}));
for (const button of el.keys.querySelectorAll("[data-key]")) {
  button.addEventListener("click", (event) => { leave(event, button); press(button.dataset.key); });
}
// Speech input types letters that nobody meant as keys, so they can be switched off.
el.shortcuts.checked = localStorage.getItem("shortcuts") !== "off";
el.shortcuts.addEventListener("change", () => {
  localStorage.setItem("shortcuts", el.shortcuts.checked ? "on" : "off");
});
addEventListener("beforeunload", (event) => { if (isDirty()) event.preventDefault(); });

function dots() {
  el.row.replaceChildren(...answers.map((_, index) => {
    const dot = document.createElement("button");
    dot.addEventListener("click", (event) => { leave(event, dot); run(() => go(index)); });
    return dot;
  }));
}

function first() {
  return answers.findIndex((one) => one.state !== "marked");
}

dots();
if (answers.length) run(() => show(Math.max(first(), 0)));
else paint();
