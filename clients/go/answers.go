package merchantwallet

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// question is the request that is answered.
type question struct {
	method    SignMethod
	secret    string
	operation string
	nonce     string
}

// rawAnswer is an answer as it came. retryAfter is negative without a header Retry-After.
type rawAnswer struct {
	status     int
	body       []byte
	requestID  string
	retryAfter time.Duration
}

// readAnswer returns the fields of `data` of a success whose signature is right. Its error is a RefusedError, an
// UnsafeAnswerError, or notAnAnswer for a body that the service did not write.
func readAnswer(asked question, answer rawAnswer) (Fields, error) {
	envelope, code, err := readEnvelope(answer)
	if err != nil {
		return nil, err
	}
	data, isObject := envelope.members["data"].(object)
	if code != Success {
		msg, _ := envelope.members["msg"].(string)
		return nil, refuse(code, msg, data, answer)
	}
	fields, err := Fields(nil), fmt.Errorf("a field is named twice")
	if !isObject {
		err = fmt.Errorf("there is no object of fields")
	} else if !envelope.isRepeated {
		fields, err = flatFields(data)
	}
	if err != nil {
		return nil, &UnsafeAnswerError{err.Error(), answer.requestID}
	}
	if wrong := checkAnswer(asked, fields); wrong != "" {
		return nil, &UnsafeAnswerError{wrong, answer.requestID}
	}
	return fields, nil
}

// findOther says whether an answer is for another order or user. MD5 signs no nonce, so an old one could be sent again.
func findOther(own, data Fields) string {
	for _, name := range []string{"mcOrderId", "extUserId"} {
		if own[name] != "" && data[name] != "" && own[name] != data[name] {
			return "it is for another " + name + ": an old one was sent again"
		}
	}
	return ""
}

func readEnvelope(answer rawAnswer) (object, Code, error) {
	envelope, err := readObject(answer.body)
	code := 0
	if err == nil {
		number, _ := envelope.members["code"].(json.Number)
		code, err = strconv.Atoi(number.String())
	}
	if err == nil && envelope.isRepeated && Code(code) != Success {
		err = fmt.Errorf("a field is named twice")
	}
	if err != nil {
		why := fmt.Sprintf("HTTP %d, and the body is not an answer of the service: %v", answer.status, err)
		return object{}, 0, &notAnAnswer{why}
	}
	return envelope, Code(code), nil
}

func refuse(code Code, msg string, data object, answer rawAnswer) error {
	fields, err := flatFields(data)
	if err != nil || len(fields) == 0 {
		fields = nil
	}
	return &RefusedError{code, msg, fields, answer.requestID, answer.retryAfter, answer.status}
}
