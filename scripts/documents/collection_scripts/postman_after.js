const path = "/" + pm.request.url.getPath().split("/").slice(-2).join("/");
const answer = pm.response.json();
pm.test(`${path}: ${answer.code} ${answer.msg}`, () => pm.expect(answer.code).to.equal(200));
if (answer.code === 200) {
  const nonceStr = pm.variables.get("nonceStr");
  pm.test("the answer is signed with the secret", () =>
    pm.expect(isSigned(pm.variables.get("secret"), path, nonceStr, pm.response.text())).to.equal(true));
  if (answer.data.orderId) pm.collectionVariables.set("orderId", String(answer.data.orderId));
  if (answer.data.tronAddress) pm.collectionVariables.set("address", answer.data.address);
}
