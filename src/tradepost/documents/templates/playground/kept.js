// What is kept in this browser: the key until the tab is closed, the last documents until they are cleared.

const DRAFT = "tradepost.graphql.draft";
const HISTORY = "tradepost.graphql.history";
const KEY = "tradepost.graphql.key";
const MOST = 30;
const LONGEST = 20_000; // characters of a document that is remembered

export const key = {
  read: () => attempted(() => sessionStorage.getItem(KEY)) ?? "",
  write: (text) => attempted(() => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY))),
};

// `{query, variables}`
export const draft = {
  read: () => object(DRAFT) ?? {},
  write: (written) => attempted(() => localStorage.setItem(DRAFT, JSON.stringify(written))),
};

// The last that ran, the newest first: `{query, variables, operation, at}`.
export const history = {
  read: () => object(HISTORY) ?? [],
  clear: () => attempted(() => localStorage.removeItem(HISTORY)),
  add(run) {
    if (run.query.length > LONGEST) return;
    const same = (each) => ["query", "variables", "operation"].every((member) => each[member] === run[member]);
    const rest = history.read().filter((each) => !same(each));
    attempted(() => localStorage.setItem(HISTORY, JSON.stringify([run, ...rest].slice(0, MOST))));
  },
};

function object(name) {
  return attempted(() => JSON.parse(localStorage.getItem(name)));
}

// A browser may refuse to keep anything, or have no room: then nothing is kept.
function attempted(does) {
  try {
    return does();
  } catch {
    return null;
  }
}
