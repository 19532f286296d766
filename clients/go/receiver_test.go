package merchantwallet

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

func writeCallback(t *testing.T, secret string, changes Fields) string {
	t.Helper()
	fields := Fields{
		"appKey": "mk_test_shop", "timestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "nonceStr": "f2579d97",
		"eventId": "evt_8589934599_2", "orderId": "8589934599", "mcOrderId": "10001", "amount": "12.5",
		"amountArrival": "11.5", "fee": "1", "rate": "0.001", "currency": "USDT", "chainType": "TRC20",
		"address": "TJRyWwFs9wTFGZg3JbrVriFbNfCug5tDeC", "txnStatus": "2", "txnTime": "1763712000000",
		"createTime": "1763712000000", "finishTime": "1763712001500",
	}
	maps.Copy(fields, changes)
	fields["sign"] = sign(HMAC, secret, callbackPath, fields)
	body, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestAnOrdersCallbackHasItsTypes(t *testing.T) {
	body := writeCallback(t, testSecret, nil)
	callback, err := VerifyCallback([]byte(body), nil, testSecret)
	order, isOrder := callback.(*OrderCallback)
	if err != nil || !isOrder || order.OrderID != 8589934599 || order.Amount != "12.5" || order.TxnStatus != Paid {
		t.Fatal(callback, err)
	}
	if order.FinishTime.Format(time.RFC3339Nano) != "2025-11-21T08:00:01.5Z" || order.TxHash != "" {
		t.Error(order)
	}
}

func TestACallbackOfAKindOfTheFutureIsVerified(t *testing.T) {
	body := writeCallback(t, testSecret, Fields{"eventType": "refund", "extra": "1"})
	callback, err := VerifyCallback([]byte(body), nil, testSecret)
	other, isOther := callback.(*OtherCallback)
	if err != nil || !isOther || other.EventType != "refund" || other.Fields["extra"] != "1" {
		t.Error(callback, err)
	}
}

func TestASecretThatDecodesToNothingVerifiesNothing(t *testing.T) {
	body := []byte(writeCallback(t, testSecret, nil))
	var bad *BadCallbackError
	for _, secret := range []string{"whsec_", "!!!!", "AAAA"} {
		if _, err := VerifyCallback(body, nil, secret); !errors.As(err, &bad) {
			t.Error(secret, err)
		}
	}
	var wrong *ArgumentError
	for _, secrets := range [][]string{{""}, {}} {
		if _, err := (Verifier{Secrets: secrets}).Verify(body, nil); !errors.As(err, &wrong) {
			t.Error(err)
		}
	}
}

// endpoint is a receiver on a real server, with what it told.
type endpoint struct {
	url    string
	lock   sync.Mutex
	news   []string
	errors []error
}

func receive(t *testing.T, store CallbackStore) *endpoint {
	t.Helper()
	end := &endpoint{}
	receiver := NewCallbackReceiver(testSecret, store)
	receiver.OnNew = func(callback Callback) {
		end.lock.Lock()
		defer end.lock.Unlock()
		end.news = append(end.news, callback.Common().EventID)
	}
	receiver.OnError = func(err error) { end.errors = append(end.errors, err) }
	server := httptest.NewServer(receiver)
	t.Cleanup(server.Close)
	end.url = server.URL
	return end
}

func (e *endpoint) send(t *testing.T, body string) (int, string) {
	t.Helper()
	response, err := http.Post(e.url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

func (e *endpoint) expect(t *testing.T, body string, status int, text string) {
	t.Helper()
	if gotStatus, got := e.send(t, body); gotStatus != status || !strings.Contains(got, text) {
		t.Error(gotStatus, got)
	}
}

func TestACallbackIsStoredBeforeItIsAnsweredAndEachEventOnce(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "in")
	end := receive(t, FileCallbackStore{folder})
	first := writeCallback(t, testSecret, nil)
	end.expect(t, first, 200, "success")
	later := strconv.FormatInt(time.Now().UnixMilli()+1000, 10)
	end.expect(t, writeCallback(t, testSecret, Fields{"timestamp": later}), 200, "success")
	var both sync.WaitGroup
	for range 2 {
		both.Add(1)
		go func() {
			defer both.Done()
			end.expect(t, writeCallback(t, testSecret, Fields{"eventId": "evt_1_6"}), 200, "success")
		}()
	}
	both.Wait()
	if strings.Join(end.news, " ") != "evt_8589934599_2 evt_1_6" || end.errors != nil {
		t.Error(end.news, end.errors)
	}
	files, _ := filepath.Glob(filepath.Join(folder, "*"))
	stored, err := os.ReadFile(filepath.Join(folder, "evt_8589934599_2.json"))
	if len(files) != 2 || string(stored) != first {
		t.Error(files, err)
	}
}

func TestAnEventIDIsNeverAPath(t *testing.T) {
	folder := t.TempDir()
	end := receive(t, FileCallbackStore{filepath.Join(folder, "in")})
	end.expect(t, writeCallback(t, testSecret, Fields{"eventId": "../../evil"}), 200, "success")
	outside, _ := filepath.Glob(filepath.Join(folder, "*"))
	inside, _ := filepath.Glob(filepath.Join(folder, "in", "*.json"))
	if len(outside) != 1 || len(inside) != 1 || len(filepath.Base(inside[0])) != 69 {
		t.Error(outside, inside)
	}
}

type fullStore struct{}

func (fullStore) Add(context.Context, Callback) (bool, error) {
	return false, errors.New("the disk is full")
}

func TestWhatIsNotGenuineGets400AndWhatCannotBeStoredGets500(t *testing.T) {
	end := receive(t, fullStore{})
	end.expect(t, writeCallback(t, "another secret", nil), 400, "neither its sign")
	old := strconv.FormatInt(time.Now().UnixMilli()-301_000, 10)
	end.expect(t, writeCallback(t, testSecret, Fields{"timestamp": old}), 400, "too far from the clock")
	end.expect(t, strings.Repeat("x", maxCallbackBytes+1), 413, "")
	end.expect(t, writeCallback(t, testSecret, nil), 500, "could not be stored")
	if len(end.news) != 0 || len(end.errors) != 4 {
		t.Error(end.news, end.errors)
	}
}
