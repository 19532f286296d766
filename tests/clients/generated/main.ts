// What a program does with each client: it sends a signed request and reads the answer.
import { AccountsApi, Configuration } from "./typescript";
import type { GetMerchantCustomerRequest } from "./typescript";
import type { components, paths } from "./schema";

type Operation = paths["/merchant/getMerchantCustomer"]["post"];
type Body = Operation["requestBody"]["content"]["application/json"];
type Answer = Operation["responses"][200]["content"]["application/json"];
type Code = components["schemas"]["Code"];

export function callGenerated(url: string): (request: GetMerchantCustomerRequest) => Promise<string> {
  const accounts = new AccountsApi(new Configuration({ basePath: url }));
  return async (request) => {
    const { code, data } = await accounts.getMerchantCustomer({ getMerchantCustomerRequest: request });
    return `${code} ${data?.extUserId ?? ""} ${(data?.serverTime ?? 0) > 0}`;
  };
}

export function callTyped(url: string): (request: Body) => Promise<string> {
  return async (request) => {
    const headers = { "Content-Type": "application/json" };
    const body = JSON.stringify(request);
    const response = await fetch(`${url}/merchant/getMerchantCustomer`, { method: "POST", headers, body });
    const answer = (await response.json()) as Answer;
    const code: Code = answer.code;
    return `${code} ${answer.data?.extUserId ?? ""} ${(answer.data?.serverTime ?? 0) > 0}`;
  };
}
