// Apollo's client with its persisted queries, over POST and then GET: prints {answers, requests}, the requests being
// {method, query, hash, status, errors} as they went over the wire.

import { createHash } from 'node:crypto';
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache, gql } from '@apollo/client';
import { PersistedQueryLink } from '@apollo/client/link/persisted-queries';

const [uri, key, orderId] = process.argv.slice(1);
const sha256 = (text) => createHash('sha256').update(text).digest('hex');
const requests = [];

async function recorded(url, init) {
  const response = await fetch(url, init);
  const asked = init.body ? JSON.parse(init.body) : Object.fromEntries(new URL(url).searchParams);
  const extensions = typeof asked.extensions === 'string' ? JSON.parse(asked.extensions) : asked.extensions;
  const { errors } = await response.clone().json();
  requests.push({
    method: init.method,
    query: asked.query !== undefined,
    hash: extensions?.persistedQuery !== undefined,
    status: response.status,
    errors: errors?.map((error) => error.message),
  });
  return response;
}

function client(useGETForHashedQueries) {
  const http = new HttpLink({ uri, headers: { authorization: `Bearer ${key}` }, fetch: recorded });
  const persisted = new PersistedQueryLink({ sha256, useGETForHashedQueries });
  return new ApolloClient({
    cache: new InMemoryCache(),
    link: ApolloLink.from([persisted, http]),
    defaultOptions: { query: { fetchPolicy: 'no-cache' }, mutate: { fetchPolicy: 'no-cache' } },
  });
}

const variables = { id: orderId };
const answers = [];
const posting = client(false);
const byPost = gql`query ByPost($id: ID!) { order(id: $id) { status } }`;
answers.push((await posting.query({ query: byPost, variables })).data);
answers.push((await posting.query({ query: byPost, variables })).data);

const getting = client(true);
const byGet = gql`query ByGet($id: ID!) { order(id: $id) { status total } }`;
answers.push((await getting.query({ query: byGet, variables })).data);
answers.push((await getting.query({ query: byGet, variables })).data);

const mutation = gql`mutation Cancel($id: ID!) { cancelOrder(id: $id) { status } }`;
answers.push((await getting.mutate({ mutation, variables })).data);

console.log(JSON.stringify({ answers, requests }));
