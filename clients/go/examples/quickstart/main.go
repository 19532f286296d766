// A shop takes a payment, meets a refusal, pays out and receives the callback.
// Run it with MERCHANT_WALLET_URL, _APP_KEY, _SECRET and _CALLBACK_SECRET of a sandbox in the environment.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	wallet "merchantwallet.example/client"
)

func main() {
	env := func(name string) string { return os.Getenv("MERCHANT_WALLET_" + name) }
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	run := strconv.FormatInt(time.Now().UnixNano()%1e9, 36) // your own order ids would come from your database

	// docs:begin connect
	shop := must(wallet.New(env("URL"), env("APP_KEY"), env("SECRET"), wallet.Options{}))
	// docs:end connect

	// docs:begin payment
	// Take a payment: look the user up, give a voucher, take the price. Amounts are texts.
	alice := must(shop.GetMerchantCustomer(ctx, "alice-"+run))
	must(shop.TransferFromMerchantToUser(ctx, wallet.MerchantToUserOrder{
		Currency: alice.Currency, Amount: "50", McOrderID: "voucher-" + run, Address: alice.Address,
	}))
	price := wallet.UserToMerchantOrder{
		ExtUserID: alice.ExtUserID, Currency: alice.Currency, Amount: "40.5", McOrderID: "cart-" + run,
	}
	paid := must(shop.TransferFromUserToMerchant(ctx, price))
	fmt.Printf("paid %s %s, amountArrival %s\n", paid.Amount, paid.Currency, paid.AmountArrival)
	// docs:end payment

	// docs:begin refusal
	// A refusal says which rule was broken. Nothing was moved, and the order id can be used again.
	price.Amount, price.McOrderID = "1000", price.McOrderID+"-2"
	_, err := shop.TransferFromUserToMerchant(ctx, price)
	if !errors.Is(err, wallet.BalanceInsufficient) {
		log.Fatal("not refused as expected: ", err)
	}
	fmt.Printf("refused with %v\n", err)
	// docs:end refusal

	// docs:begin callback
	// Your endpoint for callbacks. It stores each event before it answers `success`, so none is lost or handled twice.
	store := wallet.FileCallbackStore{Folder: os.TempDir() + "/callbacks-" + run}
	receiver := wallet.NewCallbackReceiver(env("CALLBACK_SECRET"), store)
	news := make(chan wallet.Callback, 8)
	receiver.OnNew = func(callback wallet.Callback) { news <- callback }
	listener := must(net.Listen("tcp", "127.0.0.1:"+cmp.Or(env("CALLBACK_PORT"), "0"))) // 0 is any free port
	server := &http.Server{Handler: receiver, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener)
	// docs:end callback

	// docs:begin payout
	// Pay out to an address on a chain. The callback comes when the payment is final.
	ownURL := "http://" + listener.Addr().String() + "/callbacks"
	order := must(shop.CreateMerchantWithdrawOrder(ctx, wallet.NewWithdrawOrder{
		Amount:    "12.50",
		ChainType: "TRC20",
		McOrderID: "payout-" + run,
		Address:   "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC",
		NotifyURL: cmp.Or(env("NOTIFY_URL"), ownURL),
	}))
	fmt.Printf("order %d pays out %s USDT\n", order.OrderID, order.AmountArrival)
	// docs:end payout

	for told := (*wallet.OrderCallback)(nil); told == nil; {
		select {
		case callback := <-news:
			told, _ = callback.(*wallet.OrderCallback)
		case <-ctx.Done():
			log.Fatalf("no callback came: can the service reach %s?", ownURL)
		}
		if told != nil {
			fmt.Printf("callback %s: order %s has txnStatus %s\n", told.EventID, told.McOrderID, told.TxnStatus)
		}
	}
	server.Shutdown(ctx) // waits until the callback is answered
}

// must ends the program at an error. Your program would handle it.
func must[T any](result T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return result
}
