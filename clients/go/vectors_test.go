package merchantwallet

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// listed is a field of a vector: name, text or null, kind.
type listed [3]*string

func readVectors[T any](t *testing.T, name string, least int) []T {
	t.Helper()
	folder := os.Getenv("MERCHANT_WALLET_VECTORS")
	if folder == "" {
		folder = "../../vectors"
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	var cases []T
	if err := json.Unmarshal(text, &cases); err != nil || len(cases) < least {
		t.Fatal(len(cases), err)
	}
	return cases
}

func toFields(list []listed) Fields {
	fields := Fields{}
	for _, each := range list {
		if each[1] != nil {
			fields[*each[0]] = *each[1]
		}
	}
	return fields
}

func TestEachRequestIsSignedAsItsVectorSays(t *testing.T) {
	type vector struct {
		Name, Path, Secret, StringToSign, Sign string
		Method                                 SignMethod
		Fields                                 []listed
		Valid                                  bool
	}
	for _, each := range readVectors[vector](t, "requests.json", 300) {
		if each.Fields == nil {
			continue
		}
		fields := toFields(each.Fields)
		signed, err := SignRequest(each.Method, each.Secret, each.Path, fields)
		var wrong *ArgumentError
		if each.Valid != (err == nil) || signed != each.Sign || (!each.Valid && !errors.As(err, &wrong)) {
			t.Errorf("%s: %s, %v", each.Name, signed, err)
		}
		if text := BuildStringToSign(each.Method, each.Path, fields); each.Valid && text != each.StringToSign {
			t.Errorf("%s: %q", each.Name, text)
		}
	}
}

func TestEachAnswerHasTheOutcomeOfItsVector(t *testing.T) {
	type vector struct {
		Name, Operation, Secret, NonceStr, Body, Outcome, Msg string
		Method                                                SignMethod
		HTTPStatus                                            int
		Code                                                  Code
		Data                                                  []listed
	}
	for _, each := range readVectors[vector](t, "answers.json", 600) {
		asked := question{each.Method, each.Secret, each.Operation, each.NonceStr}
		data, err := readAnswer(asked, rawAnswer{status: each.HTTPStatus, body: []byte(each.Body)})
		outcome := nameOutcome(err)
		if outcome != each.Outcome {
			t.Errorf("%s: %s instead of %s: %v", each.Name, outcome, each.Outcome, err)
			continue
		}
		delete(data, "sign")
		var refused *RefusedError
		if errors.As(err, &refused) {
			data = refused.Data
			if refused.Code != each.Code || refused.Msg != each.Msg {
				t.Errorf("%s: %v", each.Name, refused)
			}
		}
		if outcome == "success" || each.Data != nil {
			if expected := toFields(each.Data); !reflect.DeepEqual(data, expected) {
				t.Errorf("%s: %v instead of %v", each.Name, data, expected)
			}
		}
	}
}

func nameOutcome(err error) string {
	switch err.(type) {
	case nil:
		return "success"
	case *RefusedError:
		return "refused"
	case *UnsafeAnswerError:
		return "unsafe"
	case *notAnAnswer:
		return "noAnswer"
	}
	return err.Error()
}

func TestEachCallbackIsTakenOrRefusedAsItsVectorSays(t *testing.T) {
	type vector struct {
		Name, Secret, CallbackSecret, Body string
		Method                             SignMethod
		Headers                            map[string]string
		NowMs                              int64 `json:"now_ms"`
		ValidBySign, ValidByWebhook        bool
		Event                              []listed
	}
	for _, each := range readVectors[vector](t, "callbacks.json", 280) {
		header := http.Header{}
		for name, value := range each.Headers {
			header.Set(name, value)
		}
		now := func() time.Time { return time.UnixMilli(each.NowMs) }
		for _, asked := range []struct {
			secrets []string
			isValid bool
		}{
			{[]string{each.Secret}, each.ValidBySign},
			{[]string{each.CallbackSecret}, each.ValidByWebhook},
			{[]string{"another secret", each.Secret}, each.ValidBySign},
		} {
			verifier := Verifier{Secrets: asked.secrets, SignMethod: each.Method, Now: now}
			callback, err := verifier.Verify([]byte(each.Body), header)
			var bad *BadCallbackError
			if asked.isValid != (err == nil) || (err != nil && !errors.As(err, &bad)) {
				t.Errorf("%s: %v", each.Name, err)
			}
			if err != nil || !asked.isValid {
				continue
			}
			fields := callback.Common().Fields
			delete(fields, "sign")
			if expected := toFields(each.Event); !reflect.DeepEqual(fields, expected) {
				t.Errorf("%s: %v instead of %v", each.Name, fields, expected)
			}
		}
	}
}

func TestTheCodesAreThoseOfTheVectors(t *testing.T) {
	type vector struct {
		Code       Code
		Name       string
		Retry      RetryClass
		HTTPStatus int
	}
	rows := readVectors[vector](t, "codes.json", 32)
	for _, row := range rows {
		code := row.Code
		if code.Name() != row.Name || code.Retry() != row.Retry || code.HTTPStatus() != row.HTTPStatus {
			t.Errorf("%v", row)
		}
	}
	if len(codes) != len(rows) {
		t.Errorf("%d codes instead of %d", len(codes), len(rows))
	}
}
