// Calls a server of its own with the page's JavaScript code, and prints what `call` gives.
import { createServer } from "node:http";
import { call, sign } from "./wallet.mjs";

const server = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { nonceStr } = JSON.parse(body);
  const data = '"merchantId":1001,"usdtBalance":4611686018427.387904,"kfbBalance":0.000001';
  const fields = { merchantId: "1001", usdtBalance: "4611686018427.387904", kfbBalance: "0.000001" };
  const signed = sign("secret", request.url, { ...fields, code: 200, nonceStr });
  response.end(`{"code":200,"msg":"success","data":{${data},"sign":"${signed}"}}`);
});
server.listen(0, "127.0.0.1", async () => {
  const url = `http://127.0.0.1:${server.address().port}`;
  const { code, data } = await call(url, "demo", "secret", "getMerchantBalance");
  console.log(JSON.stringify([code, data.usdtBalance, data.kfbBalance]));
  server.close();
});
