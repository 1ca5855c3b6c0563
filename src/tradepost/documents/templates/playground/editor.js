// A code editor: a plain text area above a coloured copy of its text. The browser provides selection, undo,
// input methods and screen reader support.

import { painted } from "./tokens.js";

const PAIRS = { "{": "}", "(": ")", "[": "]", '"': '"' };
const STEP = "  ";
const GUTTER_PX = 56; // minimum width of the line numbers

// Fires `input` on each change. Pressing Escape, then Tab, moves the focus out of the editor.
export class Editor extends EventTarget {
  #leaving = false;

  // `colour` returns the tokens of a text and the complaints about it.
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

  // Colours the text again, after a change or when the schema has arrived.
  refresh() {
    const { tokens, complaints } = this.colour(this.text);
    this.paint.replaceChildren(painted(tokens, complaints), "\n");
    const lines = this.text.split("\n").length;
    this.numbers.textContent = Array.from({ length: lines }, (_, i) => i + 1).join("\n");
  }

  // Replaces a range so that the change can be undone; the caret moves to the end of the new text.
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
    if (left < frame.left + GUTTER_PX || right > frame.right) this.root.scrollLeft += left - frame.left - frame.width / 2;
  }

  // The rectangle of the character at a position, relative to the window.
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

  // execCommand is deprecated, but nothing else preserves the text area's undo history. Where it is missing,
  // `replace` falls back to setRangeText.
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

  // Starts a line with the same indentation; the closing bracket of an empty pair moves to its own line.
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
