package merchantwallet

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// WalletError is implemented by every error of this package, except ArgumentError.
type WalletError interface {
	error
	walletError()
}

// RefusedError says that the service refused the request, and nothing happened. errors.Is(err, BalanceInsufficient)
// asks for a code.
type RefusedError struct {
	Code Code
	Msg  string
	// Data has the fields of `data`, such as serverTime and skewMs of TimestampOutOfTolerance.
	Data Fields
	// RequestID is for the operator, who finds the request in the logs with it.
	RequestID string
	// RetryAfter is the header Retry-After; negative without one.
	RetryAfter time.Duration
	httpStatus int
}

// Retry says when the same request may be sent again. A code of the future goes by the HTTP status of a fault, too.
func (e *RefusedError) Retry() RetryClass {
	if _, isKnown := codes[e.Code]; !isKnown && e.httpStatus == http.StatusTooManyRequests {
		return AfterRetryAfter
	} else if !isKnown && e.httpStatus >= http.StatusInternalServerError {
		return SameOrderID
	}
	return e.Code.Retry()
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("%d %s", int(e.Code), e.Msg)
	if skewMs := e.Data["skewMs"]; e.Code == TimestampOutOfTolerance && skewMs != "" {
		text += fmt.Sprintf("; your clock differs by %s ms", skewMs)
	}
	return text
}

// Is makes errors.Is compare codes.
func (e *RefusedError) Is(target error) bool {
	code, isCode := target.(Code)
	return isCode && code == e.Code
}

func (e *RefusedError) walletError() {}

// UnsafeAnswerError says that an answer has code 200, but its signature does not prove it. What happened is unknown.
type UnsafeAnswerError struct {
	Why       string
	RequestID string
}

func (e *UnsafeAnswerError) Error() string { return "the answer is not proven: " + e.Why }
func (e *UnsafeAnswerError) walletError()  {}

// NoAnswerError says that there was no definite answer after all attempts. What happened is unknown: the order may
// be carried out. Call again with the same order id and the same values until there is an answer. A call that only
// reads (QueryOrder, GetMerchantCustomer, GetMerchantBalance, GetWithdrawFee) moves no money: call it again later.
type NoAnswerError struct {
	// Cause is the last attempt's error. It may be a RefusedError, which errors.As does not find: the order is not
	// known to be refused.
	Cause     error
	onlyReads bool
}

func (e *NoAnswerError) Error() string {
	if e.onlyReads {
		return "no definite answer; it moves no money, so call it again later: " + e.Cause.Error()
	}
	return "what happened is unknown, ask again with the same mcOrderId: " + e.Cause.Error()
}

// Unwrap returns the cause, such as context.DeadlineExceeded, unless it is a refusal.
func (e *NoAnswerError) Unwrap() error {
	var refused *RefusedError
	if errors.As(e.Cause, &refused) {
		return nil
	}
	return e.Cause
}

func (e *NoAnswerError) walletError() {}

// BadCallbackError says that a body is no genuine callback, or that it is too old. Answer it with HTTP status 400.
type BadCallbackError struct{ Why string }

func (e *BadCallbackError) Error() string { return "this is no callback: " + e.Why }
func (e *BadCallbackError) walletError()  {}

// ArgumentError says that an argument is wrong. Nothing was sent.
type ArgumentError struct{ Why string }

func (e *ArgumentError) Error() string { return e.Why }

// notAnAnswer is the error of a body that the service did not write.
type notAnAnswer struct{ why string }

func (e *notAnAnswer) Error() string { return e.why }
