// Fills in what is missing and signs the request. The path that is signed begins with /merchant/, whatever is before.
const path = req.getUrl().match(/\/merchant\/\w+$/)[0];
if (path !== "/merchant/queryOrder") bru.setVar("mcOrderId", makeOrderId());
const body = req.getBody();
const written = typeof body === "string" ? body : JSON.stringify(body);
const find = (name) => bru.getVar(name) ?? bru.getEnvVar(name) ?? "";
const fields = readTexts(written.replace(/\{\{(\w+)\}\}/g, (_, name) => find(name)));
fields.appKey = find("appKey");
fields.timestamp = String(Date.now());
fields.nonceStr = makeNonce();
fields.sign = sign(find("secret"), path, fields);
bru.setVar("nonceStr", fields.nonceStr);
req.setBody(fields);
