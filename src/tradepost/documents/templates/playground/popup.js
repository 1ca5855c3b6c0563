// The list of completions at the caret.

import { element } from "./element.js";

const MAX_ITEMS = 60;
const MARGIN_PX = 8;

export class Popup {
  #shown = null; // `{from, to, items}` while the list is visible
  #chosen = 0;

  // `find` returns the completions at a position of the editor's text.
  constructor(list, editor, find) {
    this.list = list;
    this.editor = editor;
    this.find = find;
    // In the capture phase, before the editor's own handler.
    editor.area.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    editor.area.addEventListener("blur", () => this.hide());
    editor.root.addEventListener("scroll", () => this.hide());
    editor.area.addEventListener("click", () => this.hide());
    editor.addEventListener("input", ({ detail }) => this.#typed(detail));
    list.addEventListener("pointerdown", (event) => this.#pointed(event));
  }

  // Shows the matching completions; without a word to complete only if the user asked for them.
  show(requested) {
    const match = this.find(this.editor.caret);
    const typed = match ? this.editor.text.slice(match.from, this.editor.caret) : "";
    const whole = match?.items.some((each) => each.text === typed);
    if (!match?.items.length || (!requested && (!typed || whole))) return this.hide();
    this.#shown = { ...match, items: match.items.slice(0, MAX_ITEMS) };
    this.list.replaceChildren(...this.#shown.items.map(option));
    this.list.hidden = false;
    this.#choose(0);
    return this.#place();
  }

  hide() {
    this.#shown = null;
    this.list.hidden = true;
    this.editor.area.removeAttribute("aria-activedescendant");
  }

  #typed(how) {
    if (how === "insertText" || (this.#shown && how === "deleteContentBackward")) this.show(false);
    else this.hide();
  }

  #key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.show(true);
    } else if (this.#shown && !event.ctrlKey && !event.metaKey && this.#steered(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
      this.hide();
    }
  }

  #steered(key) {
    const count = this.#shown.items.length;
    if (key === "ArrowDown") this.#choose((this.#chosen + 1) % count);
    else if (key === "ArrowUp") this.#choose((this.#chosen + count - 1) % count);
    else if (key === "Enter" || key === "Tab") this.#take(this.#chosen);
    else if (key === "Escape") this.hide();
    else return false;
    return true;
  }

  #choose(chosen) {
    this.#chosen = chosen;
    [...this.list.children].forEach((each, i) => each.setAttribute("aria-selected", String(i === chosen)));
    this.list.children[chosen].scrollIntoView({ block: "nearest" });
    this.editor.area.setAttribute("aria-activedescendant", `option-${chosen}`);
  }

  #take(chosen) {
    const { from, to, items } = this.#shown;
    this.editor.replace(from, to, items[chosen].insert);
    this.hide();
  }

  #pointed(event) {
    event.preventDefault(); // the focus stays in the editor
    const chosen = [...this.list.children].indexOf(event.target.closest("li"));
    if (chosen >= 0) this.#take(chosen);
  }

  // Below the word, or above it if there is no space; always within the window.
  #place() {
    const { left, top, bottom } = this.editor.box(this.#shown.from);
    const { offsetWidth: width, offsetHeight: height } = this.list;
    const below = bottom + 4 + height <= window.innerHeight - MARGIN_PX;
    this.list.style.left = `${Math.max(MARGIN_PX, Math.min(left, window.innerWidth - width - MARGIN_PX))}px`;
    this.list.style.top = `${below ? bottom + 4 : Math.max(MARGIN_PX, top - height - 4)}px`;
  }
}

function option({ text, detail, description, deprecated }, i) {
  const parts = [[deprecated ? "what old" : "what", text], ["detail", detail], ["says", description.replaceAll("`", "")]];
  const spans = parts.filter(([, shown]) => shown).map(([name, shown]) => element("span", { class: name }, shown));
  return element("li", { id: `option-${i}`, role: "option" }, ...spans);
}
