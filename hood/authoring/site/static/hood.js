// Scripts of a page: drills answer, views move, code can be copied.
"use strict";

const hood = (window.hood = { views: {} });

// Drills ------------------------------------------------------------------------------------------

// The number that a reader typed, or NaN: the same rules as utils.notebook.drills.read_number.
hood.readNumber = (typed, unit) => {
  let plain = typed.trim().toLowerCase();
  if (unit && plain.endsWith(unit.toLowerCase())) plain = plain.slice(0, -unit.length);
  plain = plain.replace(/[\s_]/g, "");
  if (/^[+-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain)) plain = plain.replaceAll(",", "");
  else if (plain.split(",").length === 2 && !plain.includes(".")) plain = plain.replace(",", ".");
  return /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) ? Number(plain) : NaN;
};

const decode = (text) =>
  JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))));

function answerDrill(form) {
  const drill = decode(form.dataset.drill);
  // Text that readers without scripts can unfold. For a number: the reason for the right answer, then
  // the reasons for mistakes. For a choice: the reason for each option.
  const folded = document.createElement("div");
  folded.className = "folded"; // seen on paper
  folded.innerHTML = form.querySelector("noscript").textContent;
  form.append(folded);
  const words = folded.querySelectorAll("details > div");
  const reasons = [...words].map((each) => each.innerHTML);
  const output = form.querySelector("output");
  const tell = (tone, ...words) => {
    const card = document.createElement("div");
    card.className = tone;
    for (const word of words) {
      const span = document.createElement("span");
      if (word.html === undefined) span.textContent = word;
      else span.innerHTML = word.html; // from the lesson, never from the reader
      card.append(span);
    }
    output.replaceChildren(card);
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const field = form.querySelector("input");
    if (!field || !field.value.trim()) return;
    const given = hood.readNumber(field.value, drill.unit);
    if (Number.isNaN(given)) {
      tell("", `“${field.value.trim()}” is not a number I can read: type one like 2400 or 0.5.`);
    } else if (Math.abs(given - drill.answer) <= drill.tolerance) {
      tell("right", { html: `<strong>Right.</strong> ${reasons[0]}` });
    } else {
      const known = reasons[drill.wrong.indexOf(given) + 1];
      const side = given < drill.answer ? "larger" : "smaller";
      const no = { html: `<strong>Not ${given.toLocaleString("en")}.</strong> ` };
      tell("wrong", no, drill.wrong.includes(given) ? { html: known } : `The answer is ${side}.`);
    }
  });
  form.querySelectorAll("button[type=button]").forEach((button, at) => {
    button.addEventListener("click", () => {
      const tone = at === drill.right ? "right" : "wrong";
      button.classList.add(tone);
      tell(tone, { html: `${button.innerHTML}: ${reasons[at]}` });
    });
  });
}

// Views -------------------------------------------------------------------------------------------

function moveView(view) {
  const places = JSON.parse(view.dataset.places); // the places that have pictures
  const controls = [...view.querySelectorAll("[data-control]")];
  const numbers = (some) => [...new Set(some)].sort((a, b) => a - b);
  const offered = controls.map((_, k) => numbers(places.map((place) => place[k])));
  const stage = view.querySelector(".stage");
  const base = stage.querySelector("img");
  const first = base.getAttribute("src");
  const [wide, high] = [base.getAttribute("width") * 2, base.getAttribute("height") * 2];
  const spoken = view.querySelector("[role=status]");
  const title = view.querySelector(".title"); // the first picture's title; later each picture's words
  let here = controls.map((control) => Number(control.dataset.start));
  let loading = null;

  const load = () =>
    (loading ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = view.dataset.src;
      script.onload = () => resolve(hood.views[view.dataset.view]);
      script.onerror = () => reject(new Error(`no pictures: ${script.src}`));
      document.head.append(script);
    }));

  const stand = () =>
    controls.forEach((control, k) => {
      const input = control.querySelector("input, select");
      if (input.type === "checkbox") input.checked = here[k] === 1;
      else input.value = offered[k].indexOf(here[k]);
      const shown = control.querySelector(".value");
      if (!shown) return;
      shown.textContent = JSON.parse(control.dataset.labels)[here[k]];
      input.setAttribute("aria-valuetext", shown.textContent);
    });

  const show = async (pictures, frame) => {
    view.classList.toggle("trouble", typeof frame === "string");
    spoken.textContent = typeof frame === "string" ? frame : frame[1];
    if (typeof frame === "string") return;
    const [x, y, width, height, data] = frame[0] < 0 ? [] : pictures[frame[0]];
    const over = new Image();
    if (data) {
      over.src = `data:image/webp;base64,${data}`;
      await over.decode();
    }
    const whole = x < 0; // a picture with another size than the base
    const source = whole ? over.src : first;
    if (base.getAttribute("src") !== source) base.src = source;
    base.setAttribute("width", (whole ? width : wide) / 2);
    base.setAttribute("height", (whole ? height : high) / 2);
    base.alt = frame[1];
    if (title) title.textContent = frame[1];
    await base.decode(); // wait before the canvas is removed, so that the stage is never empty
    stage.querySelector("canvas")?.remove();
    if (!data || whole) return;
    // Join both pictures at full size: if scaled separately, the edges of the upper one would show.
    const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high });
    canvas.setAttribute("aria-hidden", "true");
    canvas.getContext("2d").drawImage(base, 0, 0);
    canvas.getContext("2d").drawImage(over, x, y);
    stage.append(canvas);
  };

  let turn = Promise.resolve();
  const move = (k, to) => {
    const wanted = here.with(k, to);
    // If the place has no picture, take the nearest one with the new value of this control.
    const apart = (at, j) => (at === wanted[j] ? 0 : 1e6 + Math.abs(at - wanted[j]));
    const far = (place) => place.map(apart).reduce((a, b) => a + b);
    here = places.filter((place) => place[k] === to).reduce((a, b) => (far(b) < far(a) ? b : a));
    stand();
    const place = here.join(",");
    turn = turn.then(load).then(async (set) => {
      if (place !== here.join(",")) return; // the control has moved again
      await show(set.pictures, set.frames[place]);
      view.dataset.at = place; // the place that is shown
    });
  };

  controls.forEach((control, k) => {
    const input = control.querySelector("input, select");
    input.addEventListener("input", () =>
      move(k, input.type === "checkbox" ? Number(input.checked) : offered[k][Number(input.value)]),
    );
  });
  for (const touch of ["pointerenter", "focusin", "touchstart"]) {
    view.querySelector(".controls").addEventListener(touch, load, { once: true, passive: true });
  }
  stand();
  view.classList.add("ready");
}

// Code --------------------------------------------------------------------------------------------

function offerCopy(block) {
  const button = document.createElement("button");
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-live", "polite"); // says "Copied"
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.querySelector("pre").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  block.append(button);
}

// Search ------------------------------------------------------------------------------------------

// Sphinx finds pages. In a found page, return the section with most of the words, with headings counted
// twice, and among such sections the one with most occurrences; null for the page's top.
hood.sectionOf = (page, words) => {
  const starts = [...words].map((word) => new RegExp(`(?<![\\p{L}\\p{N}_])${word}`, "giu"));
  let [best, most] = [null, 0];
  for (const section of page.querySelectorAll("article section[id]")) {
    const own = section.cloneNode(true);
    own.querySelectorAll("section, .headerlink, script, style").forEach((part) => part.remove());
    const often = (text) => starts.map((start) => text.match(start)?.length ?? 0);
    const [all, titled] = [often(own.textContent), often(hood.titleOf(own))];
    const has = [...all, ...titled].filter(Boolean).length;
    const score = has * 1000 + Math.min(999, all.reduce((a, b) => a + b, 0));
    if (has && score > most) [best, most] = [section, score];
  }
  return best?.parentElement.closest("section") ? best : null;
};
hood.titleOf = (section) => section.querySelector("h1, h2, h3, h4, h5, h6")?.textContent ?? "";

// The search fetches each found page, to show some words around the match. The link leads there.
if (typeof Search !== "undefined") {
  const summary = Search.makeSearchSummary;
  Search.makeSearchSummary = (text, words, anchor) => {
    if (anchor) return summary(text, words, anchor); // the link already leads to a heading
    const page = new DOMParser().parseFromString(text, "text/html");
    page.querySelectorAll(".headerlink").forEach((link) => link.remove());
    const section = hood.sectionOf(page, words);
    const part = section && `<main role="main">${section.outerHTML}</main>`;
    const shown = summary(part ?? text, words, "");
    // after Sphinx has put the result into the list
    queueMicrotask(() => {
      const link = shown?.closest("li").querySelector("a");
      if (!link) return;
      if (section) {
        link.hash = section.id;
        link.append(`, ${hood.titleOf(section)}`);
      } else link.search = new URLSearchParams({ highlight: [...words].join(" ") });
    });
    return shown;
  };
}

// A link without a section: to a page's top, or to any page of a folder that is not served, where pages
// can't be fetched. Sphinx marks the words a moment after loading: look for a heading with a marked word first.
window.addEventListener("load", () => {
  if (location.hash) {
    // scroll again, because late pictures and fonts have moved the target
    document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
    return;
  }
  setTimeout(() => {
    const marked = (where) => document.querySelector(`article ${where} span.highlighted`);
    const found = marked("h2") ?? marked("h3") ?? marked("");
    const fold = found?.closest("details");
    if (fold) fold.open = true;
    found?.scrollIntoView({ block: "center" });
  }, 100);
});

// Keyboard ----------------------------------------------------------------------------------------

// What is wider than the page can be focused, so that the arrow keys scroll it.
const SCROLLS = "pre, .shown, .card, .math, .table-wrapper";
const sizes = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const wider = target.scrollWidth > target.clientWidth;
    const said = { tabindex: 0, role: "group", "aria-label": "Wider than the page, scrolls sideways" };
    for (const [name, value] of Object.entries(said)) {
      if (wider) target.setAttribute(name, value);
      else target.removeAttribute(name);
    }
  }
});

// In a narrow window the contents are drawers, which Furo opens for a mouse.
function openByKeyboard(box, drawer) {
  const close = () => {
    if (!box.checked) return;
    box.checked = false;
    box.focus();
  };
  box.addEventListener("change", () => {
    const all = [...drawer.querySelectorAll("a, input")];
    if (box.checked) all.find((one) => one.checkVisibility())?.focus();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter") box.click();
  });
  drawer.addEventListener("keydown", (event) => event.key === "Escape" && close());
  drawer.addEventListener("click", (event) => {
    if (event.target.closest("a[href^='#']")) box.checked = false;
  });
}

document.body.prepend(document.querySelector(".skip-to-content")); // before the drawers' fields
document.querySelectorAll(`article :is(${SCROLLS})`).forEach((each) => sizes.observe(each));
for (const [id, drawer] of [["__navigation", ".sidebar-drawer"], ["__toc", ".toc-drawer"]]) {
  openByKeyboard(document.getElementById(id), document.querySelector(drawer));
}
document.querySelectorAll("form.drill").forEach(answerDrill);
document.querySelectorAll(".view").forEach(moveView);
document.querySelectorAll("div.source").forEach(offerCopy);
