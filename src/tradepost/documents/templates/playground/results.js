// The results: one card per operation, newest on top.

import { JSON_TEXT, painted, tokens } from "./tokens.js";
import { button, element } from "./element.js";

const MAX_COLOURED = 300_000; // characters; longer results are shown without colours
const MAX_PUSHES = 100; // shown of one subscription

export class Results {
  constructor(root, jump) {
    this.root = root;
    this.jump = jump; // to a position in the document: `(line, column)`
    this.cards = [];
  }

  // Adds a card for an operation that starts now. Removes finished cards; running subscriptions stay.
  begin(title, stop) {
    this.cards = this.cards.filter((each) => each.running);
    const card = new Card(title, stop, this.jump);
    this.cards.unshift(card);
    this.root.replaceChildren(...this.cards.map((each) => each.root));
    return card;
  }
}

class Card {
  constructor(title, stop, jump) {
    this.running = true;
    this.pushes = 0;
    this.jump = jump;
    this.state = element("span", { class: "state", role: "status" }, "running …");
    this.stop = button("Stop", stop, { class: "stop" });
    this.body = element("div", { class: "answers" });
    this.root = element("article", { class: "card running", "aria-label": title },
      element("header", {}, element("h3", {}, title), this.state, this.stop), this.body);
  }

  // Shows the result of a query or mutation.
  answered({ status, reason, ms, body }) {
    this.#end([`${status} ${reason}`.trim(), `${Math.round(ms)} ms`, cost(body)], status < 400 && !body?.errors);
    this.body.replaceChildren(...this.#shown(body));
  }

  listening() {
    this.state.textContent = "listening …";
  }

  // Adds one push of a subscription, newest on top.
  pushed(body) {
    this.pushes += 1;
    this.state.textContent = `listening … ${count(this.pushes)}`;
    const at = element("p", { class: "at" }, `${this.pushes} · ${new Date().toLocaleTimeString()}`);
    this.body.prepend(element("section", {}, at, ...this.#shown(body)));
    if (this.body.children.length > MAX_PUSHES) this.body.lastChild.remove();
  }

  refused(errors) {
    this.body.prepend(...this.#shown({ errors }));
  }

  ended(why, well) {
    this.#end([why, this.pushes ? count(this.pushes) : ""], well);
  }

  failed(why) {
    this.#end([why], false);
  }

  #end(parts, well) {
    this.running = false;
    this.stop.hidden = true;
    this.root.className = well ? "card well" : "card wrong";
    this.state.textContent = parts.filter(Boolean).join(" · ");
  }

  #shown(body) {
    const text = typeof body === "string" ? body : JSON.stringify(body, null, 2);
    const parts = text.length > MAX_COLOURED ? [{ kind: "space", text }] : tokens(text, JSON_TEXT);
    const errors = Array.isArray(body?.errors) ? body.errors : [];
    return [
      ...errors.map((each) => this.#error(each)),
      element("pre", { class: "json", tabindex: "0", "aria-label": "Result as JSON" }, painted(parts)),
    ];
  }

  #error({ message, extensions, locations }) {
    const code = element("code", {}, extensions?.code ?? "error");
    const line = element("p", { class: "error" }, code, ` ${message ?? ""} `);
    const [where] = locations ?? [];
    if (where) {
      line.append(button(`line ${where.line}`, () => this.jump(where.line, where.column), { class: "link" }));
    }
    return line;
  }
}

function cost(body) {
  const { complexity, depth, statements } = body?.extensions?.cost ?? {};
  return complexity === undefined ? "" : `cost ${complexity}, depth ${depth}, SQL statements ${statements}`;
}

function count(pushes) {
  return pushes === 1 ? "1 push" : `${pushes} pushes`;
}
