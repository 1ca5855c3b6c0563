// What the browser remembers: the API key until the tab is closed, the last documents until they are cleared.

const DRAFT = "tradepost.graphql.draft";
const HISTORY = "tradepost.graphql.history";
const KEY = "tradepost.graphql.key";
const MAX_RUNS = 30;
const MAX_LENGTH = 20_000; // characters; longer documents are not remembered

export const key = {
  read: () => attempted(() => sessionStorage.getItem(KEY)) ?? "",
  write: (text) => attempted(() => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY))),
};

// `{query, variables}`
export const draft = {
  read: () => object(DRAFT) ?? {},
  write: (written) => attempted(() => localStorage.setItem(DRAFT, JSON.stringify(written))),
};

// The last operations that ran, newest first: `{query, variables, operation, at}`.
export const history = {
  read: () => object(HISTORY) ?? [],
  clear: () => attempted(() => localStorage.removeItem(HISTORY)),
  add(run) {
    if (run.query.length > MAX_LENGTH) return;
    const same = (each) => ["query", "variables", "operation"].every((member) => each[member] === run[member]);
    const rest = history.read().filter((each) => !same(each));
    attempted(() => localStorage.setItem(HISTORY, JSON.stringify([run, ...rest].slice(0, MAX_RUNS))));
  },
};

function object(name) {
  return attempted(() => JSON.parse(localStorage.getItem(name)));
}

// A browser may deny storage or have no space left; nothing is remembered then.
function attempted(action) {
  try {
    return action();
  } catch {
    return null;
  }
}
