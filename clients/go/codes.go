package merchantwallet

import "strconv"

// RetryClass says when the same request may be sent again.
type RetryClass string

// The retry classes of the interface.
const (
	NoRetry          RetryClass = "no retry"
	Never            RetryClass = "never"
	Later            RetryClass = "later"
	NewTimestamp     RetryClass = "new timestamp"
	NewNonce         RetryClass = "new nonceStr"
	AfterSubUserActs RetryClass = "after the sub-user acts"
	AfterFunding     RetryClass = "after funding"
	AfterRetryAfter  RetryClass = "after Retry-After"
	SameOrderID      RetryClass = "same mcOrderId"
)

// Code is a code of the interface. It is an error too, so errors.Is(err, BalanceInsufficient) asks whether the
// service refused with this code.
type Code int

// The codes of the interface.
const (
	Success                 Code = 200
	PathUnknown             Code = 404
	MethodNotAllowed        Code = 405
	BodyTooLarge            Code = 413
	MediaTypeUnsupported    Code = 415
	BodyMalformed           Code = 40000
	FieldInvalid            Code = 40001
	AmountOutOfRange        Code = 40002
	CurrencyUnsupported     Code = 40003
	ChainUnsupported        Code = 40004
	AddressUnusable         Code = 40005
	NotifyURLUnacceptable   Code = 40006
	AppKeyUnknown           Code = 40100
	SignatureMismatch       Code = 40101
	TimestampOutOfTolerance Code = 40102
	NonceRepeated           Code = 40103
	SourceNotAllowed        Code = 40104
	MerchantSuspended       Code = 40300
	OperationDisabled       Code = 40301
	DebitNotAllowed         Code = 40302
	SubuserNotFound         Code = 40400
	OrderNotFound           Code = 40401
	WalletNotFound          Code = 40402
	AddressNotListed        Code = 40403
	OrderIDConflict         Code = 40900
	BalanceInsufficient     Code = 42200
	AmountWithinFee         Code = 42201
	LimitExceeded           Code = 42202
	ExchangeUnavailable     Code = 42203
	TooManyRequests         Code = 42900
	InternalFault           Code = 50000
	Unavailable             Code = 50300
)

type codeRow struct {
	name       string
	retry      RetryClass
	httpStatus int
}

var codes = map[Code]codeRow{
	Success:                 {"SUCCESS", NoRetry, 200},
	PathUnknown:             {"PATH_UNKNOWN", Never, 404},
	MethodNotAllowed:        {"METHOD_NOT_ALLOWED", Never, 405},
	BodyTooLarge:            {"BODY_TOO_LARGE", Never, 413},
	MediaTypeUnsupported:    {"MEDIA_TYPE_UNSUPPORTED", Never, 415},
	BodyMalformed:           {"BODY_MALFORMED", Never, 200},
	FieldInvalid:            {"FIELD_INVALID", Never, 200},
	AmountOutOfRange:        {"AMOUNT_OUT_OF_RANGE", Never, 200},
	CurrencyUnsupported:     {"CURRENCY_UNSUPPORTED", Never, 200},
	ChainUnsupported:        {"CHAIN_UNSUPPORTED", Never, 200},
	AddressUnusable:         {"ADDRESS_UNUSABLE", Never, 200},
	NotifyURLUnacceptable:   {"NOTIFY_URL_UNACCEPTABLE", Never, 200},
	AppKeyUnknown:           {"APP_KEY_UNKNOWN", Never, 200},
	SignatureMismatch:       {"SIGNATURE_MISMATCH", Never, 200},
	TimestampOutOfTolerance: {"TIMESTAMP_OUT_OF_TOLERANCE", NewTimestamp, 200},
	NonceRepeated:           {"NONCE_REPEATED", NewNonce, 200},
	SourceNotAllowed:        {"SOURCE_NOT_ALLOWED", Never, 200},
	MerchantSuspended:       {"MERCHANT_SUSPENDED", Later, 200},
	OperationDisabled:       {"OPERATION_DISABLED", Never, 200},
	DebitNotAllowed:         {"DEBIT_NOT_ALLOWED", AfterSubUserActs, 200},
	SubuserNotFound:         {"SUBUSER_NOT_FOUND", Never, 200},
	OrderNotFound:           {"ORDER_NOT_FOUND", Never, 200},
	WalletNotFound:          {"WALLET_NOT_FOUND", Never, 200},
	AddressNotListed:        {"ADDRESS_NOT_LISTED", Never, 200},
	OrderIDConflict:         {"ORDER_ID_CONFLICT", Never, 200},
	BalanceInsufficient:     {"BALANCE_INSUFFICIENT", AfterFunding, 200},
	AmountWithinFee:         {"AMOUNT_WITHIN_FEE", Never, 200},
	LimitExceeded:           {"LIMIT_EXCEEDED", Later, 200},
	ExchangeUnavailable:     {"EXCHANGE_UNAVAILABLE", Later, 200},
	TooManyRequests:         {"TOO_MANY_REQUESTS", AfterRetryAfter, 429},
	InternalFault:           {"INTERNAL_FAULT", SameOrderID, 500},
	Unavailable:             {"UNAVAILABLE", SameOrderID, 503},
}

// Name is the name that the service's documents give the code, or an empty text for a code of the future.
func (c Code) Name() string { return codes[c].name }

// Retry says when the same request may be sent again. The first digits of a code of the future say what it is. Unless
// they say that it was refused, the outcome is unknown.
func (c Code) Retry() RetryClass {
	if row, known := codes[c]; known {
		return row.retry
	}
	switch c / 100 {
	case 400, 401, 403, 404, 409:
		return Never
	case 422:
		return Later
	case 429:
		return AfterRetryAfter
	}
	return SameOrderID
}

// HTTPStatus is the HTTP status of an answer with this code.
func (c Code) HTTPStatus() int {
	if row, known := codes[c]; known {
		return row.httpStatus
	}
	return 200
}

// Error makes a code a target of errors.Is.
func (c Code) Error() string { return strconv.Itoa(int(c)) + " " + c.Name() }
