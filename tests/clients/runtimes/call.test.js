// Jest loads the client with its own require.
const { call } = require("./call.cjs");

test("a signed success and a refusal", async () => {
  expect(await call()).toBe("true true 40401");
});
