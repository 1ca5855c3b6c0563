// Splits a GraphQL document or JSON into tokens, for colouring and for reading.

export const GRAPHQL = new RegExp(
  [
    /(?<space>[\s,\uFEFF]+)/,
    /(?<comment>#[^\n\r]*)/,
    /(?<string>"""(?:\\"""|[^])*?(?:"""|$)|"(?:\\.|[^"\\\n\r])*"?)/,
    /(?<variable>\$\w*)/,
    /(?<directive>@\w*)/,
    /(?<name>[A-Za-z_]\w*)/,
    /(?<number>-?\d[\d.eE+-]*)/,
    /(?<mark>\.\.\.|[!&()[\]{}:=|])/,
    /(?<bad>[^])/,
  ].map((each) => each.source).join("|"),
  "g",
);

export const JSON_TEXT = new RegExp(
  [
    /(?<space>\s+)/,
    /(?<field>"(?:\\.|[^"\\\n])*"(?=\s*:))/,
    /(?<string>"(?:\\.|[^"\\\n])*"?)/,
    /(?<number>-?\d[\d.eE+-]*)/,
    /(?<keyword>true|false|null)/,
    /(?<mark>[{}[\],:])/,
    /(?<bad>[^])/,
  ].map((each) => each.source).join("|"),
  "g",
);

// Every token, including white space: `{kind, text, at, end}`.
export function tokens(text, grammar) {
  return Array.from(text.matchAll(grammar), ({ 0: part, index, groups }) => {
    const kind = Object.keys(groups).find((name) => groups[name] !== undefined);
    return { kind, text: part, at: index, end: index + part.length };
  });
}

// The tokens as coloured nodes; those within a complaint are marked.
export function painted(parts, complaints = []) {
  const whole = document.createDocumentFragment();
  for (const { kind, text, at, end } of parts) {
    const wrong = complaints.some((each) => each.at < end && at < each.end);
    if (kind === "space" || (kind === "mark" && !wrong)) {
      whole.append(text);
    } else {
      const span = document.createElement("span");
      span.className = wrong ? `${kind} wrong` : kind;
      span.textContent = text;
      whole.append(span);
    }
  }
  return whole;
}
