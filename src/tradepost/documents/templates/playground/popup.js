// The list of what could be written at the caret.

const SHOWN = 60;
const MARGIN = 8;

export class Popup {
  #found = null; // `{from, to, items}` while it is shown
  #chosen = 0;

  // `find` gives what could stand at a place in the editor's text.
  constructor(list, editor, find) {
    this.list = list;
    this.editor = editor;
    this.find = find;
    // Before the editor hears of the key itself.
    editor.area.addEventListener("keydown", (event) => this.#key(event), { capture: true });
    editor.area.addEventListener("blur", () => this.hide());
    editor.root.addEventListener("scroll", () => this.hide());
    editor.area.addEventListener("click", () => this.hide());
    editor.addEventListener("input", ({ detail }) => this.#typed(detail));
    list.addEventListener("pointerdown", (event) => this.#pointed(event));
  }

  // Shows what fits; `asked` also where nothing was begun yet.
  show(asked) {
    const found = this.find(this.editor.caret);
    const typed = found ? this.editor.text.slice(found.from, this.editor.caret) : "";
    const whole = found?.items.some((each) => each.text === typed);
    if (!found?.items.length || (!asked && (!typed || whole))) return this.hide();
    this.#found = { ...found, items: found.items.slice(0, SHOWN) };
    this.list.replaceChildren(...this.#found.items.map(option));
    this.list.hidden = false;
    this.#choose(0);
    return this.#place();
  }

  hide() {
    this.#found = null;
    this.list.hidden = true;
    this.editor.area.removeAttribute("aria-activedescendant");
  }

  #typed(how) {
    if (how === "insertText" || (this.#found && how === "deleteContentBackward")) this.show(false);
    else this.hide();
  }

  #key(event) {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      this.show(true);
    } else if (this.#found && !event.ctrlKey && !event.metaKey && this.#steered(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) {
      this.hide();
    }
  }

  #steered(key) {
    const count = this.#found.items.length;
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
    const { from, to, items } = this.#found;
    this.editor.replace(from, to, items[chosen].insert);
    this.hide();
  }

  #pointed(event) {
    event.preventDefault(); // the editor keeps the focus
    const chosen = [...this.list.children].indexOf(event.target.closest("li"));
    if (chosen >= 0) this.#take(chosen);
  }

  // Below the word, or above it where there is no room; always within the window.
  #place() {
    const { left, top, bottom } = this.editor.box(this.#found.from);
    const { offsetWidth: width, offsetHeight: height } = this.list;
    const below = bottom + 4 + height <= window.innerHeight - MARGIN;
    this.list.style.left = `${Math.max(MARGIN, Math.min(left, window.innerWidth - width - MARGIN))}px`;
    this.list.style.top = `${below ? bottom + 4 : Math.max(MARGIN, top - height - 4)}px`;
  }
}

function option({ text, detail, says, old }, i) {
  const made = document.createElement("li");
  made.id = `option-${i}`;
  made.setAttribute("role", "option");
  for (const [name, shown] of [["what", text], ["detail", detail], ["says", says.replaceAll("`", "")]]) {
    if (!shown) continue;
    const part = document.createElement("span");
    part.className = old && name === "what" ? `${name} old` : name;
    part.textContent = shown;
    made.append(part);
  }
  return made;
}
