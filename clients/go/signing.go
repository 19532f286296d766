package merchantwallet

import (
	"crypto/hmac"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"sort"
	"strings"
)

// SignMethod is how a merchant's requests, answers and callbacks are signed.
type SignMethod string

const (
	// HMAC is the usual method.
	HMAC SignMethod = "HMAC"
	// MD5 is a weak legacy method, which the operator may have set for an old client.
	MD5 SignMethod = "MD5"
)

const (
	callbackPath  = "callback"
	shortSign     = 20
	longSign      = 32
	leastKeyBytes = 16
)

// neverInAnswers are fields of requests and callbacks. MD5 can't tell those from an answer otherwise.
var neverInAnswers = []string{"appKey", "eventId", "nonceStr", "timestamp"}

// BuildStringToSign returns the text that is signed; for MD5 without `&key=` and the secret.
func BuildStringToSign(method SignMethod, path string, fields Fields) string {
	names := make([]string, 0, len(fields))
	for name, text := range fields {
		if name != "sign" && text != "" {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	lines := make([]string, 0, len(names)+1)
	if method != MD5 {
		lines = append(lines, path)
	}
	for _, name := range names {
		lines = append(lines, name+"="+fields[name])
	}
	if method == MD5 {
		return strings.Join(lines, "&")
	}
	return strings.Join(lines, "\n")
}

// SignRequest returns the 32 characters of `sign`. It returns an ArgumentError for fields that the service refuses to
// take as signed, such as a value with a line feed.
func SignRequest(method SignMethod, secret, path string, fields Fields) (string, error) {
	if fields["eventId"] != "" {
		return "", &ArgumentError{"eventId belongs to callbacks"}
	}
	if unclear := findUnclear(fields, method); unclear != "" {
		return "", &ArgumentError{unclear}
	}
	return sign(method, secret, path, fields), nil
}

func sign(method SignMethod, secret, path string, fields Fields) string {
	text := BuildStringToSign(method, path, fields)
	if method == MD5 {
		digest := md5.Sum([]byte(text + "&key=" + secret))
		return strings.ToUpper(hex.EncodeToString(digest[:]))
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return hex.EncodeToString(mac.Sum(nil))[:longSign]
}

// pathOf returns the path of an operation. A path stays as it is.
func pathOf(operation string) string {
	if strings.HasPrefix(operation, "/") {
		return operation
	}
	return "/merchant/" + operation
}

// checkAnswer says what is wrong with the signature of an answer with code 200, or nothing.
func checkAnswer(asked question, data Fields) string {
	if unclear := findUnclear(data, asked.method); unclear != "" {
		return unclear
	}
	signed := Fields{}
	for name, text := range data {
		if asked.method == MD5 && slices.Contains(neverInAnswers, name) {
			return name + " belongs to requests and callbacks"
		}
		signed[name] = text
	}
	if asked.method != MD5 {
		signed["code"], signed["nonceStr"] = "200", asked.nonce
	}
	length := longSign
	if asked.operation == "createMerchantWithdrawOrder" || asked.operation == "exchange" {
		length = shortSign
	}
	expected := sign(asked.method, asked.secret, pathOf(asked.operation), signed)[:length]
	if !hmac.Equal([]byte(expected), []byte(data["sign"])) {
		return "sign is not the signature of this answer"
	}
	return ""
}

// signWebhook returns the `webhook-signature` of Standard Webhooks, or nothing if the secret is no callback secret.
func signWebhook(secret, id, timestamp string, body []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	// An empty key would let anybody sign.
	if err != nil || len(key) < leastKeyBytes {
		return ""
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
