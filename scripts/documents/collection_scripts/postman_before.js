// Fills in what is missing and signs the request. The path that is signed begins with /merchant/, whatever is before.
const path = "/" + pm.request.url.getPath().split("/").slice(-2).join("/");
if (path !== "/merchant/queryOrder") pm.collectionVariables.set("mcOrderId", makeOrderId());
const fields = readTexts(pm.variables.replaceIn(pm.request.body.raw));
fields.appKey = pm.variables.get("appKey");
fields.timestamp = String(Date.now());
fields.nonceStr = makeNonce();
fields.sign = sign(pm.variables.get("secret"), path, fields);
pm.variables.set("nonceStr", fields.nonceStr);
pm.request.body.update({ mode: "raw", raw: JSON.stringify(fields), options: { raw: { language: "json" } } });
