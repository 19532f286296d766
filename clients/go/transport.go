package merchantwallet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net"
	"net/http"
	"strconv"
	"time"
)

const (
	maxAnswerBytes = 1 << 20
	maxWait        = time.Minute
	connectTimeout = 5 * time.Second
	// Lower codes come before the service looks for a known mcOrderId, so they say nothing of an earlier attempt.
	firstCodeOfAnOrder = 40302
)

// reads are the operations that move no money: without an answer nothing is unknown.
var reads = map[string]bool{
	"queryOrder": true, "getMerchantCustomer": true, "getMerchantBalance": true, "getWithdrawFee": true,
}

// connection sends requests. Its limits are those of Options.
type connection struct {
	http    *http.Client
	timeout time.Duration
	retries int
	wait    time.Duration
}

// lostAnswer is the error of an attempt without a whole answer.
type lostAnswer struct{ cause error }

func (e *lostAnswer) Error() string { return e.cause.Error() }
func (e *lostAnswer) Unwrap() error { return e.cause }

func makeHTTPClient() *http.Client {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = (&net.Dialer{Timeout: connectTimeout, KeepAlive: 30 * time.Second}).DialContext
	transport.MaxIdleConnsPerHost = 16
	return &http.Client{Transport: transport, CheckRedirect: refuseRedirect}
}

// refuseRedirect makes the redirect itself the answer, which is not one of the service.
func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// post sends a JSON body and reads the whole answer.
func (c connection) post(ctx context.Context, url string, body []byte) (rawAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return rawAnswer{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return rawAnswer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(io.LimitReader(response.Body, maxAnswerBytes+1))
	if err == nil && len(read) > maxAnswerBytes {
		err = fmt.Errorf("the answer is longer than %d bytes", maxAnswerBytes)
	}
	header := response.Header
	return rawAnswer{response.StatusCode, read, header.Get("X-Request-Id"), readRetryAfter(header)}, err
}

// repeat runs attempt until there is a definite answer. It returns a NoAnswerError if what happened is still unknown
// after the last one.
func (c connection) repeat(ctx context.Context, attempt func() (Fields, error)) (Fields, error) {
	isUnknown, hadNewTimestamp := false, false
	for retry := 0; ; retry++ {
		data, err := attempt()
		if err == nil {
			return data, nil
		}
		wait, again := judge(err, usualWait(c.wait, retry), hadNewTimestamp)
		// Nonces are random: a used one says that something on the way sent this very request before.
		isUnknown = isUnknown || leavesUnknown(err) || retryClass(err) == NewNonce
		hadNewTimestamp = hadNewTimestamp || retryClass(err) == NewTimestamp
		if !again || retry >= c.retries || !sleep(ctx, wait) {
			return nil, conclude(err, isUnknown)
		}
	}
}

// usualWait is doubled before each further attempt, up to a minute.
func usualWait(first time.Duration, retry int) time.Duration {
	wait := first
	for ; retry > 0 && wait < maxWait; retry-- {
		wait *= 2
	}
	return min(wait, maxWait)
}

// judge says whether there may be another attempt, and how long to wait before it.
func judge(err error, usual time.Duration, hadNewTimestamp bool) (time.Duration, bool) {
	switch retryClass(err) {
	case NewTimestamp:
		return 0, !hadNewTimestamp
	case NewNonce:
		return 0, true
	}
	if !leavesUnknown(err) {
		return 0, false
	}
	var refused *RefusedError
	if errors.As(err, &refused) && refused.RetryAfter >= 0 {
		return min(refused.RetryAfter, maxWait), true
	}
	return usual + time.Duration(rand.Int63n(int64(usual)/4+1)), true
}

// leavesUnknown says whether the request may have been carried out in spite of this error.
func leavesUnknown(err error) bool {
	var lost *lostAnswer
	var strange *notAnAnswer
	class := retryClass(err)
	return class == SameOrderID || class == AfterRetryAfter || errors.As(err, &lost) || errors.As(err, &strange)
}

func conclude(err error, isUnknown bool) error {
	var refused *RefusedError
	isRefused := errors.As(err, &refused)
	if !isUnknown || !(isRefused || leavesUnknown(err)) {
		return err
	}
	if isRefused && refused.Code >= firstCodeOfAnOrder && !leavesUnknown(err) {
		return err
	}
	var lost *lostAnswer
	if errors.As(err, &lost) {
		err = lost.cause
	}
	return &NoAnswerError{Cause: err}
}

func retryClass(err error) RetryClass {
	var refused *RefusedError
	if errors.As(err, &refused) {
		return refused.Retry()
	}
	return ""
}

// sleep returns false if the context ended first.
func sleep(ctx context.Context, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

func readRetryAfter(header http.Header) time.Duration {
	seconds, err := strconv.ParseUint(header.Get("Retry-After"), 10, 31)
	if err != nil {
		return -1
	}
	return time.Duration(seconds) * time.Second
}
