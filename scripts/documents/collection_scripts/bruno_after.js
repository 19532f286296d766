const path = req.getUrl().match(/\/merchant\/\w+$/)[0];
const answer = res.getBody();
const raw = typeof answer === "string" ? answer : writePlain(answer);
test(`${path}: ${answer.code} ${answer.msg}`, () => expect(answer.code).to.equal(200));
if (answer.code === 200) {
  test("the answer is signed with the secret", () =>
    expect(isSigned(bru.getEnvVar("secret"), path, bru.getVar("nonceStr"), raw)).to.equal(true));
  if (answer.data.orderId) bru.setVar("orderId", String(answer.data.orderId));
  if (answer.data.tronAddress) bru.setVar("address", answer.data.address);
}

// Bruno gives the answer as numbers. JavaScript prints small ones as 1e-7, and the service writes 0.0000001.
function writePlain(value) {
  return JSON.stringify(value, (_, part) => (typeof part === "number" ? showPlain(part) : part));
}

function showPlain(number) {
  return Math.abs(number) < 1e-6 && number !== 0 ? number.toFixed(8).replace(/0+$/, "") : String(number);
}
