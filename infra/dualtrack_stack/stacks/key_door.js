// CloudFront runs this for each request to the API (viewer request): /v1 stands behind the user pool, which knows no
// API keys, so a request with one goes on to /key/v1 (docs/keys.md).
function handler(event) {
  const request = event.request;
  const sent = request.headers.authorization;
  if (sent && /^bearer +dt_/i.test(sent.value) && request.uri.startsWith("/v1/")) {
    request.uri = "/key" + request.uri;
  }
  return request;
}
