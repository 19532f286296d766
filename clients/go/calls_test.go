package merchantwallet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	testSecret = "0123456789abcdef0123456789abcdef"
	testPath   = "/merchant/transferFromUserToMerchant"
	testData   = `"transactionId":8589934597,"amount":40.5,"amountArrival":40.2975,"rate":0.005,"fee":0.2025,` +
		`"currency":"KFB","mcOrderId":"cart-7"`
)

var testOrder = UserToMerchantOrder{ExtUserID: "alice", Currency: "KFB", Amount: "40.50", McOrderID: "cart-7"}

type reply func(response http.ResponseWriter, sent Fields)

// scripted is a service that gives these replies, one for each request. The last one is repeated.
type scripted struct {
	url  string
	lock sync.Mutex
	sent []Fields
}

func serve(t *testing.T, replies ...reply) *scripted {
	t.Helper()
	script := &scripted{}
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		sent := Fields{}
		if err := json.NewDecoder(request.Body).Decode(&sent); err != nil {
			t.Error(err)
		}
		_, _ = io.Copy(io.Discard, request.Body)
		script.lock.Lock()
		script.sent = append(script.sent, sent)
		index := min(len(script.sent), len(replies)) - 1
		script.lock.Unlock()
		replies[index](response, sent)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	script.url = server.URL + "/"
	return script
}

func (s *scripted) count() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	return len(s.sent)
}

func succeed(response http.ResponseWriter, sent Fields) {
	read, _ := readObject([]byte("{" + testData + "}"))
	signed, _ := flatFields(read)
	signed["code"], signed["nonceStr"] = "200", sent["nonceStr"]
	signature := sign(HMAC, testSecret, testPath, signed)
	fmt.Fprintf(response, `{"code":200,"msg":"success","data":{%s,"sign":"%s"}}`, testData, signature)
}

func refuseWith(code, status int, retryAfter string) reply {
	return func(response http.ResponseWriter, _ Fields) {
		response.Header().Set("X-Request-Id", "r-1")
		if retryAfter != "" {
			response.Header().Set("Retry-After", retryAfter)
		}
		response.WriteHeader(status)
		fmt.Fprintf(response, `{"code":%d,"msg":"no","data":null}`, code)
	}
}

func disconnect(http.ResponseWriter, Fields) { panic(http.ErrAbortHandler) }

func sayNothing(http.ResponseWriter, Fields) { time.Sleep(300 * time.Millisecond) }

func sayLate(response http.ResponseWriter, _ Fields) {
	_, _ = io.WriteString(response, `{"code":40102,"msg":"no","data":{"serverTime":1763712008000,"skewMs":-600000}}`)
}

var unavailable = refuseWith(50300, 503, "0")

func open(t *testing.T, url string, options Options) *MerchantWallet {
	t.Helper()
	options.Wait = time.Millisecond
	wallet, err := New(url, "mk_test_shop", testSecret, options)
	if err != nil {
		t.Fatal(err)
	}
	return wallet
}

func transfer(t *testing.T, service *scripted, options Options) (UserToMerchantTransfer, error) {
	t.Helper()
	return open(t, service.url, options).TransferFromUserToMerchant(context.Background(), testOrder)
}

func TestACallSendsASignedRequestAndReturnsTextsForAmounts(t *testing.T) {
	service := serve(t, succeed)
	got, err := transfer(t, service, Options{})
	expected := UserToMerchantTransfer{8589934597, "40.5", "40.2975", "0.005", "0.2025", "KFB", "cart-7"}
	if err != nil || got != expected {
		t.Fatal(got, err)
	}
	if got.AmountArrival.Rat().FloatString(6) != "40.297500" || Amount("x").Rat() != nil {
		t.Error(got.AmountArrival)
	}
	sent := service.sent[0]
	if sent["amount"] != "40.50" || sent["sign"] != sign(HMAC, testSecret, testPath, sent) {
		t.Error(sent)
	}
}

func TestARepeatHasTheSameOrderIDAndANewNonce(t *testing.T) {
	service := serve(t, unavailable, disconnect, succeed)
	if _, err := transfer(t, service, Options{}); err != nil {
		t.Fatal(err)
	}
	nonces, signs := map[string]bool{}, map[string]bool{}
	for _, sent := range service.sent {
		nonces[sent["nonceStr"]], signs[sent["sign"]] = true, true
		if sent["mcOrderId"] != "cart-7" {
			t.Error(sent)
		}
	}
	if len(nonces) != 3 || len(signs) != 3 {
		t.Error(nonces, signs)
	}
}

func TestAPageOfAProxyIsRepeated(t *testing.T) {
	page := func(response http.ResponseWriter, _ Fields) { http.Error(response, "<html>", http.StatusBadGateway) }
	service := serve(t, page, succeed)
	if _, err := transfer(t, service, Options{Retries: 1}); err != nil || service.count() != 2 {
		t.Error(err)
	}
}

// counted counts attempts.
type counted struct{ attempts atomic.Int32 }

func (c *counted) RoundTrip(request *http.Request) (*http.Response, error) {
	c.attempts.Add(1)
	return http.DefaultTransport.RoundTrip(request)
}

func TestWithoutAnyAnswerWhatHappenedIsUnknown(t *testing.T) {
	service, link := serve(t, sayNothing), &counted{}
	options := Options{Timeout: 20 * time.Millisecond, Retries: 1, HTTPClient: &http.Client{Transport: link}}
	_, err := transfer(t, service, options)
	var unknown *NoAnswerError
	if !errors.As(err, &unknown) || !errors.Is(err, context.DeadlineExceeded) || link.attempts.Load() != 2 {
		t.Error(err)
	}
}

func TestAfterAnInternalFaultWhatHappenedIsUnknownAndTheRefusalIsTheCause(t *testing.T) {
	service := serve(t, refuseWith(50000, 500, "0"))
	_, err := transfer(t, service, Options{})
	var unknown *NoAnswerError
	if !errors.As(err, &unknown) || !errors.Is(unknown.Cause, InternalFault) || service.count() != 4 {
		t.Fatal(err)
	}
	var refused *RefusedError
	if errors.Is(err, InternalFault) || errors.As(err, &refused) {
		t.Error("an unknown outcome must not look like a refusal")
	}
}

func TestAfterAReadWithoutAnAnswerNothingIsUnknown(t *testing.T) {
	ctx := context.Background()
	reads := []func(*MerchantWallet) error{
		func(w *MerchantWallet) error { _, err := w.GetMerchantBalance(ctx); return err },
		func(w *MerchantWallet) error { _, err := w.GetMerchantCustomer(ctx, "alice"); return err },
		func(w *MerchantWallet) error { _, err := w.GetWithdrawFee(ctx, "5"); return err },
		func(w *MerchantWallet) error { _, err := w.QueryOrder(ctx, 1, "order-1"); return err },
		func(w *MerchantWallet) error { _, err := w.Call(ctx, "getMerchantBalance", Fields{}); return err },
	}
	for _, trouble := range []reply{disconnect, unavailable, refuseWith(42900, 429, "0")} {
		wallet := open(t, serve(t, trouble).url, Options{Retries: 1})
		for _, read := range reads {
			err := read(wallet)
			var noAnswer *NoAnswerError
			if !errors.As(err, &noAnswer) || !strings.Contains(err.Error(), "it moves no money, so call it again later") {
				t.Error(err)
			} else if strings.Contains(err.Error(), "unknown") || strings.Contains(err.Error(), "mcOrderId") {
				t.Error(err)
			}
		}
	}
}

func TestAnExchangeWithoutAnOrderIDIsNeverSentTwice(t *testing.T) {
	service := serve(t, disconnect, unavailable)
	wallet := open(t, service.url, Options{Retries: 1})
	own := Fields{"amount": "10", "sendCurrency": "USDT", "receiveCurrency": "KFB"}
	for call, sent := range []int{1, 2, 4} {
		operation := "exchange"
		if call == 1 {
			operation = "/merchant/exchange"
		}
		if call == 2 {
			own["mcOrderId"] = "fx-1"
		}
		_, err := wallet.Call(context.Background(), operation, own)
		var unknown *NoAnswerError
		if !errors.As(err, &unknown) || service.count() != sent {
			t.Error(call, service.count(), err)
		}
	}
}

func TestAControlActionIsSignedForItsPathAndSentOnceWithoutAnOrderID(t *testing.T) {
	service := serve(t, disconnect)
	wallet := open(t, service.url, Options{Retries: 1})
	calls := []struct {
		action string
		own    Fields
		sent   int
	}{
		{"fund", Fields{"currency": "USDT", "amount": "10"}, 1},
		{"deposit", Fields{"chainType": "TRC20", "amount": "10"}, 2},
		{"fund", Fields{"currency": "USDT", "amount": "10", "mcOrderId": "tap-1"}, 4},
	}
	for _, call := range calls {
		_, err := wallet.Sandbox(context.Background(), call.action, call.own)
		var unknown *NoAnswerError
		sent := service.sent[service.count()-1]
		if !errors.As(err, &unknown) || service.count() != call.sent ||
			sent["sign"] != sign(HMAC, testSecret, "/sandbox/"+call.action, sent) {
			t.Error(call, service.count(), err)
		}
	}
}

func TestABusinessRefusalIsAnErrorOfItsCodeAtOnce(t *testing.T) {
	service := serve(t, refuseWith(42200, 200, ""))
	_, err := transfer(t, service, Options{})
	var refused *RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, BalanceInsufficient) || errors.Is(err, LimitExceeded) {
		t.Fatal(err)
	}
	if refused.RequestID != "r-1" || refused.Retry() != AfterFunding || service.count() != 1 {
		t.Error(refused, service.count())
	}
}

func TestAfterAnUnknownOutcomeARefusalOfTheOrderIsBelievedAndOneBeforeItIsNot(t *testing.T) {
	_, err := transfer(t, serve(t, unavailable, refuseWith(42200, 200, "")), Options{})
	if !errors.Is(err, BalanceInsufficient) {
		t.Error(err)
	}
	_, err = transfer(t, serve(t, unavailable, refuseWith(40300, 200, "")), Options{})
	var unknown *NoAnswerError
	if !errors.As(err, &unknown) || !errors.Is(unknown.Cause, MerchantSuspended) {
		t.Error(err)
	}
}

func TestAUsedNonceIsRepeatedAtOnceAndAWrongTimeOnce(t *testing.T) {
	service := serve(t, refuseWith(40103, 200, ""), sayLate, succeed)
	if _, err := transfer(t, service, Options{}); err != nil {
		t.Error(err)
	}
	service = serve(t, sayLate)
	_, err := transfer(t, service, Options{})
	if !errors.Is(err, TimestampOutOfTolerance) || !strings.Contains(err.Error(), "-600000 ms") || service.count() != 2 {
		t.Error(err)
	}
}

func TestAUsedNonceOrANewCodeOfAFaultLeavesTheOutcomeUnknown(t *testing.T) {
	for _, replies := range [][]reply{
		{refuseWith(40103, 200, "")},
		{refuseWith(40103, 200, ""), refuseWith(40300, 200, "")},
		{refuseWith(40999, 503, "0")},
		{refuseWith(40999, 429, "0")},
	} {
		_, err := transfer(t, serve(t, replies...), Options{Retries: 1})
		var unknown *NoAnswerError
		if !errors.As(err, &unknown) {
			t.Error(err)
		}
	}
	if _, err := transfer(t, serve(t, refuseWith(40999, 503, "0"), succeed), Options{}); err != nil {
		t.Error(err)
	}
	var refused *RefusedError
	if _, err := transfer(t, serve(t, refuseWith(40999, 200, "")), Options{}); !errors.As(err, &refused) {
		t.Error(err)
	}
}

func TestTheFirstDigitsOfANewCodeSayWhatItIs(t *testing.T) {
	for code, expected := range map[Code]RetryClass{
		40099: Never, 40199: Never, 40399: Never, 40499: Never, 40999: Never, 42299: Later, 42999: AfterRetryAfter,
		50099: SameOrderID, 59999: SameOrderID, 49999: SameOrderID, 60000: SameOrderID, 418: SameOrderID, 0: SameOrderID,
	} {
		if code.Retry() != expected {
			t.Error(code, code.Retry())
		}
	}
}

func TestNoWaitIsLongerThanAMinute(t *testing.T) {
	lost := &lostAnswer{io.ErrUnexpectedEOF}
	for _, retry := range []int{0, 10, 40, 100} {
		wait, again := judge(lost, usualWait(time.Second, retry), false)
		if !again || wait < time.Second || wait > maxWait+maxWait/4 {
			t.Error(retry, wait)
		}
	}
}

func TestASuccessThatIsNotProvenEndsTheCall(t *testing.T) {
	forged := func(response http.ResponseWriter, _ Fields) {
		fmt.Fprintf(response, `{"code":200,"msg":"success","data":{%s,"sign":"00"}}`, testData)
	}
	service := serve(t, forged)
	_, err := transfer(t, service, Options{})
	var unsafe *UnsafeAnswerError
	if !errors.As(err, &unsafe) || service.count() != 1 {
		t.Error(err)
	}
}

func TestWithMD5TheTrueAnswerForAnotherOrderIsNotBelieved(t *testing.T) {
	old := func(response http.ResponseWriter, _ Fields) {
		read, _ := readObject([]byte("{" + testData + "}"))
		signed, _ := flatFields(read)
		signature := sign(MD5, testSecret, testPath, signed)
		fmt.Fprintf(response, `{"code":200,"msg":"success","data":{%s,"sign":"%s"}}`, testData, signature)
	}
	wallet := open(t, serve(t, old).url, Options{SignMethod: MD5})
	if _, err := wallet.TransferFromUserToMerchant(context.Background(), testOrder); err != nil {
		t.Error(err)
	}
	other := testOrder
	other.McOrderID = "cart-8"
	_, err := wallet.TransferFromUserToMerchant(context.Background(), other)
	var unsafe *UnsafeAnswerError
	if !errors.As(err, &unsafe) {
		t.Error(err)
	}
}

func TestAContextEndsACallAndItsRepeats(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	service := serve(t, func(http.ResponseWriter, Fields) {
		cancel()
		disconnect(nil, nil)
	})
	_, err := open(t, service.url, Options{}).GetMerchantBalance(ctx)
	var unknown *NoAnswerError
	if !errors.As(err, &unknown) || service.count() != 1 {
		t.Error(err, service.count())
	}
}

func TestARedirectIsNotFollowedAndAnEndlessAnswerIsGivenUp(t *testing.T) {
	away := func(response http.ResponseWriter, _ Fields) {
		response.Header().Set("Location", "http://127.0.0.1:1/")
		response.WriteHeader(http.StatusFound)
	}
	endless := func(response http.ResponseWriter, _ Fields) {
		_, _ = io.WriteString(response, strings.Repeat("x", maxAnswerBytes+1))
	}
	service := serve(t, away, endless)
	_, err := transfer(t, service, Options{Retries: 1})
	if err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Error(err)
	}
}

func TestWrongArgumentsAreRefusedBeforeAnythingIsSent(t *testing.T) {
	service := serve(t, succeed)
	wallet := open(t, service.url, Options{})
	var wrong *ArgumentError
	for _, own := range []Fields{{"x": "a\nb=1"}, {"eventId": "e"}, {"a b": "1"}, {"x": "\xff"}} {
		if _, err := wallet.Call(context.Background(), "exchange", own); !errors.As(err, &wrong) {
			t.Error(own, err)
		}
	}
	if _, err := wallet.Exchange(context.Background(), ExchangeOrder{Amount: "1"}); !errors.As(err, &wrong) {
		t.Error(err)
	}
	for _, words := range [][3]string{{"wallet.example", "a", "b"}, {service.url, "", "b"}, {service.url, "a", ""}} {
		if _, err := New(words[0], words[1], words[2], Options{}); !errors.As(err, &wrong) {
			t.Error(words, err)
		}
	}
	if service.count() != 0 {
		t.Error("something was sent")
	}
}

func TestNoTextShowsTheSecret(t *testing.T) {
	wallet := open(t, "https://wallet.example", Options{})
	receiver := NewCallbackReceiver(testSecret, FileCallbackStore{"folder"})
	for _, shown := range []any{wallet, *wallet, receiver, *receiver, receiver.Verifier, &receiver.Verifier} {
		text := fmt.Sprintf("%s %v %+v %#v", shown, shown, shown, shown)
		if strings.Contains(text, testSecret) {
			t.Error(text)
		}
	}
}
