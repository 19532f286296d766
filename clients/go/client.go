package merchantwallet

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Options are settings of a client. The zero value of each means its default.
type Options struct {
	// SignMethod is HMAC by default.
	SignMethod SignMethod
	// Timeout is for one attempt, from connecting to the last byte. Default: 30 seconds.
	Timeout time.Duration
	// Retries are attempts after the first one, each with a new nonce and the same order id. Default: 3. A negative
	// number means none.
	Retries int
	// Wait is before the second attempt if the service names no time, and doubled each time. Default: 1 second.
	Wait time.Duration
	// HTTPClient is for example one that uses a proxy. It should not follow redirects.
	HTTPClient *http.Client
}

// MerchantWallet is a client of one merchant. Any number of goroutines may use it at once.
type MerchantWallet struct {
	baseURL, appKey, secret string
	method                  SignMethod
	connection              connection
}

// UserToMerchantOrder has the fields of TransferFromUserToMerchant.
type UserToMerchantOrder struct {
	ExtUserID string
	Currency  string
	Amount    Amount
	McOrderID string
}

// MerchantToUserOrder has the fields of TransferFromMerchantToUser.
type MerchantToUserOrder struct {
	Currency  string
	Amount    Amount
	McOrderID string
	Address   string
}

// NewWithdrawOrder has the fields of CreateMerchantWithdrawOrder. Currency is USDT by default.
type NewWithdrawOrder struct {
	Amount    Amount
	ChainType string
	Currency  string
	McOrderID string
	Address   string
	NotifyURL string
}

// ExchangeOrder has the fields of Exchange. Without McOrderID a repeat would be another exchange, so this client
// requires it. MinAmountArrival is optional.
type ExchangeOrder struct {
	Amount           Amount
	SendCurrency     string
	ReceiveCurrency  string
	McOrderID        string
	MinAmountArrival Amount
}

var matchBaseURL = regexp.MustCompile(`^https?://`)

// New returns a client. The secret is never in an error or in what fmt prints.
func New(baseURL, appKey, secret string, options Options) (*MerchantWallet, error) {
	if !matchBaseURL.MatchString(baseURL) {
		return nil, &ArgumentError{"baseURL must begin with https:// or http://"}
	}
	if appKey == "" || secret == "" {
		return nil, &ArgumentError{"appKey and secret must not be empty"}
	}
	if options.SignMethod == "" {
		options.SignMethod = HMAC
	}
	if options.Timeout <= 0 {
		options.Timeout = 30 * time.Second
	}
	if options.Retries == 0 {
		options.Retries = 3
	}
	if options.Wait <= 0 {
		options.Wait = time.Second
	}
	if options.HTTPClient == nil {
		options.HTTPClient = makeHTTPClient()
	}
	link := connection{options.HTTPClient, options.Timeout, options.Retries, options.Wait}
	return &MerchantWallet{strings.TrimRight(baseURL, "/"), appKey, secret, options.SignMethod, link}, nil
}

// String has no secret.
func (w MerchantWallet) String() string {
	return "MerchantWallet(" + w.baseURL + ", " + w.appKey + ")"
}

// GoString has no secret.
func (w MerchantWallet) GoString() string { return w.String() }

// TransferFromUserToMerchant takes an amount from a sub-user's wallet.
func (w *MerchantWallet) TransferFromUserToMerchant(
	ctx context.Context, order UserToMerchantOrder,
) (UserToMerchantTransfer, error) {
	own := Fields{
		"extUserId": order.ExtUserID,
		"currency":  order.Currency,
		"amount":    string(order.Amount),
		"mcOrderId": order.McOrderID,
	}
	return ask(ctx, w, "transferFromUserToMerchant", own, readUserToMerchantTransfer)
}

// TransferFromMerchantToUser gives an amount to the sub-user that an address belongs to.
func (w *MerchantWallet) TransferFromMerchantToUser(
	ctx context.Context, order MerchantToUserOrder,
) (MerchantToUserTransfer, error) {
	own := Fields{
		"currency":  order.Currency,
		"amount":    string(order.Amount),
		"mcOrderId": order.McOrderID,
		"address":   order.Address,
	}
	return ask(ctx, w, "transferFromMerchantToUser", own, readMerchantToUserTransfer)
}

// CreateMerchantWithdrawOrder creates an order that pays USDT to an address on a chain.
func (w *MerchantWallet) CreateMerchantWithdrawOrder(
	ctx context.Context, order NewWithdrawOrder,
) (WithdrawOrder, error) {
	own := Fields{
		"amount":    string(order.Amount),
		"chainType": order.ChainType,
		"currency":  orUSDT(order.Currency),
		"mcOrderId": order.McOrderID,
		"address":   order.Address,
		"notifyUrl": order.NotifyURL,
	}
	return ask(ctx, w, "createMerchantWithdrawOrder", own, readWithdrawOrder)
}

// QueryOrder shows a withdrawal order.
func (w *MerchantWallet) QueryOrder(ctx context.Context, orderID int64, mcOrderID string) (Order, error) {
	own := Fields{"orderId": strconv.FormatInt(orderID, 10), "mcOrderId": mcOrderID}
	return ask(ctx, w, "queryOrder", own, readOrder)
}

// GetMerchantCustomer finds a sub-user. An unknown one is created, unless the operator has switched that off.
func (w *MerchantWallet) GetMerchantCustomer(ctx context.Context, extUserID string) (Customer, error) {
	return ask(ctx, w, "getMerchantCustomer", Fields{"extUserId": extUserID}, readCustomer)
}

// GetMerchantBalance returns your balances, without the amounts on hold.
func (w *MerchantWallet) GetMerchantBalance(ctx context.Context) (Balance, error) {
	return ask(ctx, w, "getMerchantBalance", Fields{}, readBalance)
}

// Exchange exchanges one of your currencies for the other.
func (w *MerchantWallet) Exchange(ctx context.Context, order ExchangeOrder) (Exchange, error) {
	if order.McOrderID == "" {
		return Exchange{}, &ArgumentError{"McOrderID is required: without it a repeat exchanges again"}
	}
	own := Fields{
		"amount":           string(order.Amount),
		"sendCurrency":     order.SendCurrency,
		"receiveCurrency":  order.ReceiveCurrency,
		"mcOrderId":        order.McOrderID,
		"minAmountArrival": string(order.MinAmountArrival),
	}
	return ask(ctx, w, "exchange", own, readExchange)
}

// GetWithdrawFee returns what a withdrawal created now would cost.
func (w *MerchantWallet) GetWithdrawFee(ctx context.Context, amount Amount) (WithdrawFee, error) {
	own := Fields{"amount": string(amount), "currency": "USDT"}
	return ask(ctx, w, "getWithdrawFee", own, readWithdrawFee)
}

// once has what happens again at a repeat without mcOrderId.
var once = map[string]bool{"exchange": true, "/sandbox/fund": true, "/sandbox/deposit": true}

// Call calls any operation and returns all signed fields of `data` as texts, also those that this version does not
// know. An operation that moves money must have an order id in own. An exchange without one is sent once: a repeat would
// be another exchange.
func (w *MerchantWallet) Call(ctx context.Context, operation string, own Fields) (Fields, error) {
	// What is known of an operation is known by its name.
	operation = strings.TrimPrefix(operation, "/merchant/")
	link := w.connection
	if once[operation] && own["mcOrderId"] == "" {
		link.retries = 0
	}
	data, err := link.repeat(ctx, func() (Fields, error) { return w.attempt(ctx, operation, own) })
	var unknown *NoAnswerError
	if errors.As(err, &unknown) {
		unknown.onlyReads = reads[operation]
	}
	return data, err
}

// Sandbox calls a control action of a sandbox, such as "deposit", for your tests, and returns as Call does. A fund without
// mcOrderId and a deposit are sent once: a repeat would be another.
func (w *MerchantWallet) Sandbox(ctx context.Context, action string, own Fields) (Fields, error) {
	return w.Call(ctx, "/sandbox/"+action, own)
}

func (w *MerchantWallet) attempt(ctx context.Context, operation string, own Fields) (Fields, error) {
	nonce, err := drawNonce()
	if err != nil {
		return nil, err
	}
	fields := Fields{
		"appKey":    w.appKey,
		"timestamp": strconv.FormatInt(time.Now().UnixMilli(), 10),
		"nonceStr":  nonce,
	}
	for name, text := range own {
		if text != "" {
			fields[name] = text
		}
	}
	path := pathOf(operation)
	if fields["sign"], err = SignRequest(w.method, w.secret, path, fields); err != nil {
		return nil, err
	}
	body, err := json.Marshal(fields)
	if err != nil {
		return nil, err
	}
	answer, err := w.connection.post(ctx, w.baseURL+path, body)
	if err != nil {
		return nil, &lostAnswer{err}
	}
	data, err := readAnswer(question{w.method, w.secret, operation, nonce}, answer)
	if other := findOther(own, data); err == nil && w.method == MD5 && other != "" {
		return nil, &UnsafeAnswerError{other, answer.requestID}
	}
	return data, err
}

// ask calls an operation and reads its typed result.
func ask[T any](
	ctx context.Context, w *MerchantWallet, operation string, own Fields, read func(*fieldReader) T,
) (T, error) {
	var none T
	data, err := w.Call(ctx, operation, own)
	if err != nil {
		return none, err
	}
	reader := &fieldReader{fields: data}
	result := read(reader)
	if reader.err != nil {
		return none, &UnsafeAnswerError{Why: reader.err.Error()}
	}
	return result, nil
}

func orUSDT(currency string) string {
	if currency == "" {
		return "USDT"
	}
	return currency
}

func drawNonce() (string, error) {
	random := make([]byte, 16)
	_, err := rand.Read(random)
	return hex.EncodeToString(random), err
}
