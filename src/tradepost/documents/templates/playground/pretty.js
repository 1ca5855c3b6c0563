// Formats a GraphQL document. Only white space and commas change; comments stay.

import { GRAPHQL, tokens } from "./tokens.js";

const WIDTH = 90;
const OPENING = ["(", "[", "{"];
const CLOSING = [")", "]", "}"];

export function pretty(text) {
  const printer = new Printer(text);
  printer.parts.forEach((token, i) => printer.print(token, i));
  return `${printer.out.trim()}\n`;
}

class Printer {
  #open = []; // the open brackets: `{mark, selects, broken}`; broken means one item per line
  #previous = null; // the previous token that is no comment
  #commented = false; // whether a comment came after the previous token
  #ended = false; // whether a definition just ended

  constructor(text) {
    const all = tokens(text, GRAPHQL);
    const lines = (i) => (all[i - 1]?.kind === "space" ? all[i - 1].text.split("\n").length - 1 : 0);
    this.parts = all.filter((each) => each.kind !== "space");
    this.alone = new Set(all.filter((_, i) => i === 0 || lines(i) > 0));
    this.apart = new Set(all.filter((_, i) => lines(i) > 1));
    this.out = "";
  }

  print(token, i) {
    if (token.kind === "comment") return this.#comment(token);
    if (CLOSING.includes(token.text)) this.#close(token);
    else this.#plain(token, i);
    this.#previous = token;
    this.#commented = false;
    return undefined;
  }

  #comment(token) {
    if (!this.alone.has(token)) this.out = `${this.out.trimEnd()} `;
    else if (this.out) this.#line(this.#ended || this.apart.has(token));
    this.out += token.text;
    this.#commented = true;
    this.#ended = this.#ended && !this.alone.has(token);
  }

  #close(token) {
    const { broken } = this.#open.pop() ?? {};
    if (broken || this.#commented) this.#line();
    this.out += token.text;
    this.#ended = token.text === "}" && !this.#open.length;
  }

  #plain(token, i) {
    if (this.#ended || this.#commented) this.#line(this.#ended || this.apart.has(token));
    else if (this.#previous) this.#space(token, this.parts[i + 1]?.text);
    this.#ended = false;
    this.out += token.text;
    if (OPENING.includes(token.text)) {
      const selects = token.text === "{" && this.#open.every((each) => each.selects);
      this.#open.push({ mark: token.text, selects, broken: selects || this.#long(i) });
    }
  }

  // Writes the separator between the previous token and this one.
  #space(token, ahead) {
    const around = this.#open.at(-1);
    const first = OPENING.includes(this.#previous.text);
    if (around?.broken && (first || this.#begins(token, ahead, around))) this.#line();
    else if (!first && around && this.#begins(token, ahead, around)) this.out += ", ";
    else if (!first && !tight(token, this.#previous)) this.out += " ";
  }

  // Whether a token begins the next item of the enclosing brackets.
  #begins(token, ahead, { mark, selects }) {
    if (mark === "[") return OPENING.includes(token.text) || !["mark", "directive"].includes(token.kind);
    if (!selects) return ahead === ":";
    const bound = [":", "..."].includes(this.#previous.text) || this.#condition;
    return token.text === "..." || (token.kind === "name" && !bound);
  }

  // Whether the previous token is the `on` of `... on User`.
  get #condition() {
    return this.#previous.text === "on" && this.parts[this.parts.indexOf(this.#previous) - 1]?.text === "...";
  }

  // Whether the line would be too long with everything up to the matching bracket.
  #long(i) {
    let depth = 0;
    let length = this.out.length - this.out.lastIndexOf("\n");
    for (const { text } of this.parts.slice(i)) {
      depth += Number(OPENING.includes(text)) - Number(CLOSING.includes(text));
      length += text.length + (text === ":" ? 2 : 0);
      if (depth === 0) break;
    }
    return length > WIDTH;
  }

  #line(apart = false) {
    this.out = `${this.out.trimEnd()}\n${apart ? "\n" : ""}${"  ".repeat(this.#open.length)}`;
  }
}

// Whether a token follows the previous one without a space.
function tight(token, previous) {
  if (previous.text === "..." && token.kind === "name") return token.text !== "on";
  return [":", "!", "("].includes(token.text);
}
