package merchantwallet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// openAccount returns an account of a real service in a sandbox, which the environment names. The variables of the
// quick start are not read: these tests move money and expect particular fees.
func openAccount(t *testing.T) (*MerchantWallet, context.Context) {
	t.Helper()
	url := os.Getenv("MERCHANT_WALLET_TEST_URL")
	if url == "" {
		t.Skip("MERCHANT_WALLET_TEST_URL names no service")
	}
	wallet, err := New(url, os.Getenv("MERCHANT_WALLET_TEST_APP_KEY"), os.Getenv("MERCHANT_WALLET_TEST_SECRET"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return wallet, ctx
}

func draw(word string) string {
	random := make([]byte, 4)
	_, _ = rand.Read(random)
	return word + "-" + hex.EncodeToString(random)
}

func must[T any](t *testing.T) func(T, error) T {
	return func(result T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
}

func TestADayOfAShop(t *testing.T) {
	wallet, ctx := openAccount(t)
	before := must[Balance](t)(wallet.GetMerchantBalance(ctx))
	exchange := must[Exchange](t)(wallet.Exchange(ctx, ExchangeOrder{
		Amount: "100.00", SendCurrency: "USDT", ReceiveCurrency: "KFB", McOrderID: draw("fx"),
	}))
	if exchange.Amount != "100" || exchange.AmountArrival != "710" || exchange.Rate != "7.1" {
		t.Error(exchange)
	}
	alice := must[Customer](t)(wallet.GetMerchantCustomer(ctx, draw("ålice😀")))
	if alice.Balance != "0" || alice.Currency != "KFB" || len(alice.Address) != 42 {
		t.Error(alice)
	}
	given := must[MerchantToUserTransfer](t)(wallet.TransferFromMerchantToUser(ctx, MerchantToUserOrder{
		Currency: "KFB", Amount: "60", McOrderID: draw("topup"), Address: alice.Address,
	}))
	if given.Amount != "60" {
		t.Error(given)
	}
	order := UserToMerchantOrder{alice.ExtUserID, "KFB", "40.500001", draw("cart")}
	paid := must[UserToMerchantTransfer](t)(wallet.TransferFromUserToMerchant(ctx, order))
	if paid.Amount != "40.500001" || paid.Fee != "0.405" || paid.AmountArrival != "40.095001" {
		t.Error(paid)
	}
	if again := must[UserToMerchantTransfer](t)(wallet.TransferFromUserToMerchant(ctx, order)); again != paid {
		t.Error("a repeat has the first outcome", again)
	}
	if left := must[Customer](t)(wallet.GetMerchantCustomer(ctx, alice.ExtUserID)); left.Balance != "19.499999" {
		t.Error(left)
	}
	gift := Fields{"currency": "KFB", "amount": "1.5", "extUserId": alice.ExtUserID}
	if funded := must[Fields](t)(wallet.Sandbox(ctx, "fund", gift)); funded["balance"] != "20.999999" {
		t.Error(funded)
	}
	after := must[Balance](t)(wallet.GetMerchantBalance(ctx))
	if after.MerchantID != before.MerchantID || after.KFBBalance == before.KFBBalance {
		t.Error(before, after)
	}
}

func TestEachRefusalIsAnErrorOfItsCode(t *testing.T) {
	wallet, ctx := openAccount(t)
	bob := must[Customer](t)(wallet.GetMerchantCustomer(ctx, draw("bob")))
	debit := UserToMerchantOrder{bob.ExtUserID, "KFB", "1", draw("cart")}
	_, poor := wallet.TransferFromUserToMerchant(ctx, debit)
	debit.ExtUserID = draw("nobody")
	_, nobody := wallet.TransferFromUserToMerchant(ctx, debit)
	_, noOrder := wallet.QueryOrder(ctx, 1, "1")
	_, noAmount := wallet.GetWithdrawFee(ctx, "1e2")
	must[Exchange](t)(wallet.Exchange(ctx, ExchangeOrder{"1.00", "USDT", "KFB", draw("fx"), ""}))
	give := MerchantToUserOrder{"KFB", "2", draw("topup"), bob.Address}
	must[MerchantToUserTransfer](t)(wallet.TransferFromMerchantToUser(ctx, give))
	give.Amount = "3"
	_, conflict := wallet.TransferFromMerchantToUser(ctx, give)
	other, _ := New(os.Getenv("MERCHANT_WALLET_TEST_URL"), os.Getenv("MERCHANT_WALLET_TEST_APP_KEY"), "another", Options{})
	_, forged := other.GetMerchantBalance(ctx)
	for code, err := range map[Code]error{
		BalanceInsufficient: poor, SubuserNotFound: nobody, OrderNotFound: noOrder, FieldInvalid: noAmount,
		OrderIDConflict: conflict, SignatureMismatch: forged,
	} {
		if !errors.Is(err, code) {
			t.Error(code, err)
		}
	}
	var refused *RefusedError
	if !errors.As(forged, &refused) || refused.RequestID == "" ||
		!strings.HasPrefix(refused.Data["stringToSign"], "/merchant/getMerchantBalance\nappKey=") {
		t.Error(forged)
	}
}

func TestAWithdrawalIsPaidAndItsCallbackIsStored(t *testing.T) {
	wallet, ctx := openAccount(t)
	news := make(chan Callback, 8)
	receiver := NewCallbackReceiver(os.Getenv("MERCHANT_WALLET_TEST_CALLBACK_SECRET"), FileCallbackStore{t.TempDir()})
	receiver.OnNew = func(callback Callback) { news <- callback }
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	fee := must[WithdrawFee](t)(wallet.GetWithdrawFee(ctx, "12.50"))
	if fee != (WithdrawFee{"12.5", "11.5", "1", "0.005"}) {
		t.Error(fee)
	}
	order := must[WithdrawOrder](t)(wallet.CreateMerchantWithdrawOrder(ctx, NewWithdrawOrder{
		Amount: "12.50", ChainType: "TRC20", McOrderID: draw("payout"),
		Address: "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC", NotifyURL: server.URL + "/",
	}))
	select {
	case callback := <-news:
		told, isOrder := callback.(*OrderCallback)
		if !isOrder || told.OrderID != order.OrderID || told.TxnStatus != Paid {
			t.Error(callback)
		}
	case <-ctx.Done():
		t.Fatal("no callback came")
	}
	query := must[Order](t)(wallet.QueryOrder(ctx, order.OrderID, order.McOrderID))
	if query.TxnStatus != Paid || query.McOrderID != order.McOrderID {
		t.Error(query)
	}
}
