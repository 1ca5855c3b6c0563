// A place to write code: a plain text area, and below it the same text in colours. The browser does the
// rest: selection, undo, input methods, screen readers.

import { painted } from "./tokens.js";

const PAIRS = { "{": "}", "(": ")", "[": "]", '"': '"' };
const STEP = "  ";
const GUTTER = 56; // pixels that the line numbers take, or more

// Fires `input` on each change. Escape, then Tab, leaves it by keyboard.
export class Editor extends EventTarget {
  #leaving = false;

  // `colour` gives the tokens of a text and what is wrong in it.
  constructor(root, colour) {
    super();
    this.root = root;
    this.area = root.querySelector("textarea");
    this.paint = root.querySelector(".paint");
    this.numbers = root.querySelector(".numbers");
    this.colour = colour;
    this.area.addEventListener("input", (event) => this.#changed(event.inputType));
    this.area.addEventListener("keydown", (event) => this.#key(event));
    this.area.addEventListener("blur", () => (this.#leaving = false));
  }

  get text() {
    return this.area.value;
  }

  set text(text) {
    this.area.value = text;
    this.#changed("");
  }

  get caret() {
    return this.area.selectionStart;
  }

  // Colours the text anew: after a change, or when more is known about it.
  refresh() {
    const { tokens, complaints } = this.colour(this.text);
    this.paint.replaceChildren(painted(tokens, complaints), "\n");
    const lines = this.text.split("\n").length;
    this.numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
  }

  // Puts text in place of what is between two places, so that it can be undone; the caret goes behind it.
  replace(from, to, text) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    if (document.activeElement === this.area && this.#insert(text)) return;
    this.area.setRangeText(text, from, to, "end");
    this.#changed("");
  }

  select(from, to) {
    this.area.focus();
    this.area.setSelectionRange(from, to);
    const { left, right, top, bottom } = this.box(from);
    const frame = this.root.getBoundingClientRect();
    if (top < frame.top || bottom > frame.bottom) this.root.scrollTop += top - frame.top - frame.height / 3;
    if (left < frame.left + GUTTER || right > frame.right) this.root.scrollLeft += left - frame.left - frame.width / 2;
  }

  // Where the character at a place stands in the window.
  box(at) {
    const walker = document.createTreeWalker(this.paint, NodeFilter.SHOW_TEXT);
    let left = at;
    while (walker.nextNode()) {
      const { length } = walker.currentNode;
      if (left < length) break;
      left -= length;
    }
    const range = document.createRange();
    range.setStart(walker.currentNode, left);
    range.setEnd(walker.currentNode, Math.min(left + 1, walker.currentNode.length));
    return range.getClientRects()[0] ?? range.getBoundingClientRect();
  }

  // Marked as deprecated, but nothing else keeps the text area's undo; browsers without it get the other way.
  #insert(text) {
    return document.execCommand(text ? "insertText" : "delete", false, text);
  }

  #changed(how) {
    this.refresh();
    this.dispatchEvent(new CustomEvent("input", { detail: how }));
  }

  #key(event) {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const { selectionStart: from, selectionEnd: to } = this.area;
    const done = this.#typed(event, from, to);
    this.#leaving = event.key === "Escape" || (this.#leaving && event.key === "Shift");
    if (done) event.preventDefault();
  }

  #typed({ key, shiftKey }, from, to) {
    const next = this.text[to] ?? "";
    if (key === "Tab") return !this.#leaving && this.#indent(from, to, shiftKey);
    if (key === "Enter") return this.#newLine(from, to);
    if (key === next && Object.values(PAIRS).includes(key) && from === to) return this.#step(to + 1);
    if (key in PAIRS && from === to && /^[\s,)\]}]?$/.test(next)) return this.#pair(key, from);
    if (key === "Backspace" && from === to && next && PAIRS[this.text[from - 1]] === next) return this.#unpair(from);
    return false;
  }

  #step(to) {
    this.area.setSelectionRange(to, to);
    return true;
  }

  #pair(key, from) {
    if (key === '"' && /["\w]/.test(this.text[from - 1] ?? "")) return false;
    this.replace(from, from, key + PAIRS[key]);
    return this.#step(from + 1);
  }

  #unpair(from) {
    this.replace(from - 1, from + 1, "");
    return true;
  }

  // A line as far in as this one; between brackets the closing one gets a line of its own.
  #newLine(from, to) {
    const line = this.text.slice(this.text.lastIndexOf("\n", from - 1) + 1, from);
    const margin = line.match(/^ */)[0];
    const opener = line.trimEnd().at(-1);
    const deeper = "{([".includes(opener ?? "-") ? margin + STEP : margin;
    const between = deeper !== margin && this.text[to] === PAIRS[opener];
    this.replace(from, to, `\n${deeper}${between ? `\n${margin}` : ""}`);
    return this.#step(from + 1 + deeper.length);
  }

  #indent(from, to, back) {
    if (from === to && !back) {
      this.replace(from, to, STEP);
      return true;
    }
    const start = this.text.lastIndexOf("\n", from - 1) + 1;
    const old = this.text.slice(start, to);
    const moved = back ? old.replace(/^ {1,2}/gm, "") : old.replace(/^(?=.)/gm, STEP);
    if (moved === old) return true;
    this.replace(start, to, moved);
    if (from !== to) this.area.setSelectionRange(start, start + moved.length);
    return true;
  }
}
