// Calls the service with both clients in Go. The requests are signed with the page's Go code.
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"time"

	"generated/generator"
	"generated/oapi"
	"generated/wallet"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func makeNonce() string {
	bytes := make([]byte, 16)
	must(rand.Read(bytes))
	return hex.EncodeToString(bytes)
}

func sign(timestamp int64, nonce string) string {
	return wallet.Sign(os.Getenv("MERCHANT_WALLET_SECRET"), "/merchant/getMerchantCustomer", map[string]string{
		"appKey": appKey, "timestamp": strconv.FormatInt(timestamp, 10), "nonceStr": nonce, "extUserId": "alice",
	})
}

var appKey, url = os.Getenv("MERCHANT_WALLET_APP_KEY"), os.Getenv("MERCHANT_WALLET_URL")

func callGenerator(timestamp int64, nonce string) {
	configuration := generator.NewConfiguration()
	configuration.Servers = generator.ServerConfigurations{{URL: url}}
	accounts := generator.NewAPIClient(configuration).AccountsAPI
	request := generator.NewGetMerchantCustomerRequest(appKey, timestamp, nonce, sign(timestamp, nonce), "alice")
	answer, _, err := accounts.GetMerchantCustomer(context.Background()).GetMerchantCustomerRequest(*request).Execute()
	if err != nil {
		panic(err)
	}
	data := answer.Data.Get()
	if data == nil {
		data = &generator.GetMerchantCustomerData{}
	}
	fmt.Printf("go %d %s %v\n", answer.Code, data.GetExtUserId(), data.GetServerTime() > 0)
}

func callOapi(timestamp int64, nonce string) {
	client := must(oapi.NewClientWithResponses(url))
	answer := must(client.GetMerchantCustomerWithResponse(context.Background(), oapi.GetMerchantCustomerRequest{
		AppKey: appKey, Timestamp: timestamp, NonceStr: nonce, Sign: sign(timestamp, nonce), ExtUserId: "alice",
	})).JSON200
	extUserID, hasTime := "", false
	if answer.Data != nil && answer.Data.ExtUserId != nil {
		extUserID = *answer.Data.ExtUserId
	}
	if answer.Data != nil && answer.Data.ServerTime != nil {
		hasTime = *answer.Data.ServerTime > 0
	}
	fmt.Printf("oapi-codegen %d %s %v\n", answer.Code, extUserID, hasTime)
}

func main() {
	for _, call := range []func(int64, string){callGenerator, callOapi} {
		now, nonce := time.Now().UnixMilli(), makeNonce()
		call(now, nonce)
		call(now, nonce)
		call(1, makeNonce())
	}
}
