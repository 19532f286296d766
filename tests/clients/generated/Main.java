import java.util.Map;
import java.util.UUID;
import org.openapitools.client.ApiClient;
import org.openapitools.client.api.AccountsApi;
import org.openapitools.client.model.GetMerchantCustomerAnswer;
import org.openapitools.client.model.GetMerchantCustomerData;
import org.openapitools.client.model.GetMerchantCustomerRequest;

/** Calls the service with the client in Java. The requests are signed with the page's Java code. */
public final class Main {
    private static final String APP_KEY = System.getenv("MERCHANT_WALLET_APP_KEY");

    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("MERCHANT_WALLET_URL"));
        AccountsApi accounts = new AccountsApi(client);
        GetMerchantCustomerRequest request = make(System.currentTimeMillis());
        for (GetMerchantCustomerRequest each : new GetMerchantCustomerRequest[] {request, request, make(1)}) {
            GetMerchantCustomerAnswer answer = accounts.getMerchantCustomer(each);
            GetMerchantCustomerData data = answer.getData();
            String extUserId = data == null || data.getExtUserId() == null ? "" : data.getExtUserId();
            boolean hasTime = data != null && data.getServerTime() != null && data.getServerTime() > 0;
            System.out.println("java " + answer.getCode().getValue() + " " + extUserId + " " + hasTime);
        }
    }

    private static GetMerchantCustomerRequest make(long timestamp) throws Exception {
        String nonce = UUID.randomUUID().toString().replace("-", "");
        Map<String, String> fields = Map.of(
            "appKey", APP_KEY, "timestamp", Long.toString(timestamp), "nonceStr", nonce, "extUserId", "alice");
        String sign = Wallet.sign(System.getenv("MERCHANT_WALLET_SECRET"), "/merchant/getMerchantCustomer", fields);
        return new GetMerchantCustomerRequest()
            .appKey(APP_KEY).timestamp(timestamp).nonceStr(nonce).sign(sign).extUserId("alice");
    }
}
