// @ts-nocheck: of the site's search, which declares `searchWorker`.
// Chinese has no spaces between words, so what is sought may stand anywhere between two marks of punctuation.
const ask = searchWorker.postMessage.bind(searchWorker);
searchWorker.postMessage = (message) =>
  ask(message.query ? { query: message.query.replace(/\p{Script=Han}+/gu, "*$&*") } : message);
