package merchantwallet

import (
	"crypto/hmac"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const defaultTolerance = 5 * time.Minute

// Callback is an *OrderCallback, a *DepositCallback, or an *OtherCallback of a kind that this version does not know.
type Callback interface {
	// Common returns what all callbacks have.
	Common() Event
}

// Event is what all callbacks have.
type Event struct {
	// EventID is the same at every attempt: act on it once.
	EventID string
	AppKey  string
	// Timestamp is the time of this attempt.
	Timestamp time.Time
	// Body is the body as it came.
	Body []byte
	// Fields are all fields of the body as texts, also those that this version does not know.
	Fields Fields
}

// Common returns what all callbacks have.
func (e Event) Common() Event { return e }

// OrderCallback says that a withdrawal order has reached a status.
type OrderCallback struct {
	Event
	OrderID       int64
	McOrderID     string
	Amount        Amount
	AmountArrival Amount
	Fee           Amount
	Rate          Amount
	Currency      string
	ChainType     string
	Address       string
	// TxnStatus is what this callback reports, even if the order has another status now.
	TxnStatus  TxnStatus
	TxnTime    time.Time
	CreateTime time.Time
	// FinishTime is the time of this status.
	FinishTime time.Time
	// TxHash is empty while there is no transaction.
	TxHash string
}

// DepositCallback says that a deposit was credited. UserID and ExtUserID are empty for your own deposit address, Rate
// without an exchange.
type DepositCallback struct {
	Event
	TransactionID   int64
	UserID          int64
	ExtUserID       string
	SendCurrency    string
	ReceiveCurrency string
	Amount          Amount
	AmountArrival   Amount
	Rate            Amount
	ChainType       string
	Address         string
	TxnTime         time.Time
	CreateTime      time.Time
	TxHash          string
	LogIndex        int64
}

// OtherCallback is of a kind that this version does not know.
type OtherCallback struct {
	Event
	EventType string
}

// Verifier checks callbacks.
type Verifier struct {
	// Secrets are your callback secret, for which the headers are checked, or your secret, for which the body's `sign`
	// is checked. There may be several while you change one.
	Secrets []string
	// SignMethod is the method of the body's `sign`. Default: HMAC.
	SignMethod SignMethod
	// Tolerance is how far the callback's time may be from the clock, in both directions. Default: 5 minutes.
	Tolerance time.Duration
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// String has no secret.
func (v Verifier) String() string { return "Verifier(" + string(v.method()) + ")" }

// GoString has no secret.
func (v Verifier) GoString() string { return v.String() }

func (v Verifier) method() SignMethod {
	if v.SignMethod == "" {
		return HMAC
	}
	return v.SignMethod
}

// VerifyCallback returns the callback in a body, if it is genuine and fresh, and a BadCallbackError otherwise. The body
// are the bytes as they came. The secret is your callback secret or your secret.
func VerifyCallback(body []byte, header http.Header, secret string) (Callback, error) {
	return Verifier{Secrets: []string{secret}}.Verify(body, header)
}

// Verify is VerifyCallback with the settings of the verifier.
func (v Verifier) Verify(body []byte, header http.Header) (Callback, error) {
	if len(v.Secrets) == 0 {
		return nil, &ArgumentError{"Secrets must not be empty"}
	}
	for _, secret := range v.Secrets {
		if secret == "" {
			return nil, &ArgumentError{"a secret must not be empty"}
		}
	}
	fields, err := readCallback(body)
	if err != nil {
		return nil, &BadCallbackError{err.Error()}
	}
	at, isProven := v.findTime(body, header, fields)
	if !isProven {
		return nil, &BadCallbackError{"neither its sign nor its webhook-signature is right"}
	}
	if !v.isFresh(at) {
		return nil, &BadCallbackError{"its time is too far from the clock: it was sent again, or the clock is wrong"}
	}
	return makeCallback(body, fields)
}

func readCallback(body []byte) (Fields, error) {
	read, err := readObject(body)
	if err != nil {
		return nil, err
	}
	if read.isRepeated {
		return nil, errors.New("a field is named twice")
	}
	fields, err := flatFields(read)
	if err != nil {
		return nil, err
	}
	if unclear := findUnclear(fields, HMAC); unclear != "" {
		return nil, errors.New(unclear)
	}
	if eventID, _ := read.members["eventId"].(string); eventID == "" {
		return nil, errors.New("there is no eventId")
	}
	return fields, nil
}

// findTime returns the time that a signature proves.
func (v Verifier) findTime(body []byte, header http.Header, fields Fields) (time.Time, bool) {
	for _, secret := range v.Secrets {
		if v.hasWebhookSignature(body, header, fields, secret) {
			return readTime(header.Get("webhook-timestamp"), time.Second)
		}
		if v.hasSign(fields, secret) {
			return readTime(fields["timestamp"], time.Millisecond)
		}
	}
	return time.Time{}, false
}

func (v Verifier) hasWebhookSignature(body []byte, header http.Header, fields Fields, secret string) bool {
	id := header.Get("webhook-id")
	expected := signWebhook(secret, id, header.Get("webhook-timestamp"), body)
	if expected == "" || id != fields["eventId"] {
		return false
	}
	for _, given := range strings.Split(header.Get("webhook-signature"), " ") {
		if hmac.Equal([]byte(given), []byte(expected)) {
			return true
		}
	}
	return false
}

func (v Verifier) hasSign(fields Fields, secret string) bool {
	if findUnclear(fields, v.method()) != "" {
		return false
	}
	return hmac.Equal([]byte(sign(v.method(), secret, callbackPath, fields)), []byte(fields["sign"]))
}

func (v Verifier) isFresh(at time.Time) bool {
	tolerance, now := v.Tolerance, time.Now
	if tolerance <= 0 {
		tolerance = defaultTolerance
	}
	if v.Now != nil {
		now = v.Now
	}
	return now().Sub(at).Abs() <= tolerance
}

func readTime(text string, unit time.Duration) (time.Time, bool) {
	count, err := strconv.ParseUint(text, 10, 53)
	return time.UnixMilli(int64(count) * unit.Milliseconds()), err == nil
}

func makeCallback(body []byte, fields Fields) (Callback, error) {
	r := &fieldReader{fields: fields}
	event := Event{r.text("eventId"), r.text("appKey"), r.time("timestamp"), body, fields}
	var callback Callback
	switch eventType := fields["eventType"]; eventType {
	case "":
		callback = readOrderCallback(r, event)
	case "deposit":
		callback = readDepositCallback(r, event)
	default:
		callback = &OtherCallback{event, eventType}
	}
	if r.err != nil {
		return nil, &BadCallbackError{r.err.Error()}
	}
	return callback, nil
}

func readOrderCallback(r *fieldReader, event Event) *OrderCallback {
	return &OrderCallback{
		Event:         event,
		OrderID:       r.id("orderId"),
		McOrderID:     r.text("mcOrderId"),
		Amount:        r.amount("amount"),
		AmountArrival: r.amount("amountArrival"),
		Fee:           r.amount("fee"),
		Rate:          r.amount("rate"),
		Currency:      r.text("currency"),
		ChainType:     r.text("chainType"),
		Address:       r.text("address"),
		TxnStatus:     TxnStatus(r.text("txnStatus")),
		TxnTime:       r.time("txnTime"),
		CreateTime:    r.time("createTime"),
		FinishTime:    r.time("finishTime"),
		TxHash:        r.fields["txHash"],
	}
}

func readDepositCallback(r *fieldReader, event Event) *DepositCallback {
	return &DepositCallback{
		Event:           event,
		TransactionID:   r.id("transactionId"),
		UserID:          r.optionalID("userId"),
		ExtUserID:       r.fields["extUserId"],
		SendCurrency:    r.text("sendCurrency"),
		ReceiveCurrency: r.text("receiveCurrency"),
		Amount:          r.amount("amount"),
		AmountArrival:   r.amount("amountArrival"),
		Rate:            Amount(r.fields["rate"]),
		ChainType:       r.text("chainType"),
		Address:         r.text("address"),
		TxnTime:         r.time("txnTime"),
		CreateTime:      r.time("createTime"),
		TxHash:          r.text("txHash"),
		LogIndex:        r.id("logIndex"),
	}
}
