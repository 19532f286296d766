package merchantwallet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"unicode/utf8"
)

// Fields are names with their texts. A number is its text as it came. What is null is left out.
type Fields map[string]string

var (
	matchName     = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
	searchControl = regexp.MustCompile(`[\x00-\x1f\x{7f}-\x{9f}]`)
	searchHidden  = regexp.MustCompile(`&(?:appKey|eventId|nonceStr|timestamp)=`)
)

// object is a JSON object. isRepeated says that it, or an object in it, names a field twice: programs differ in which
// one they read.
type object struct {
	members    map[string]any
	isRepeated bool
}

// readObject reads a JSON object. Unlike json.Unmarshal it notices repeated names, and it never changes a number.
func readObject(body []byte) (object, error) {
	if !utf8.Valid(body) || !json.Valid(body) {
		return object{}, errors.New("the body is not JSON")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	value, err := readValue(decoder)
	if err != nil {
		return object{}, err
	}
	if read, isObject := value.(object); isObject {
		return read, nil
	}
	return object{}, errors.New("the body is not a JSON object")
}

func readValue(decoder *json.Decoder) (any, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return readMembers(decoder)
	case json.Delim('['):
		return readItems(decoder)
	}
	return token, nil
}

func readMembers(decoder *json.Decoder) (any, error) {
	read := object{members: map[string]any{}}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		value, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		text, _ := name.(string)
		_, isRepeated := read.members[text]
		read.isRepeated = read.isRepeated || isRepeated || isRepeatedInside(value)
		read.members[text] = value
	}
	_, err := decoder.Token()
	return read, err
}

func readItems(decoder *json.Decoder) (any, error) {
	items := []any{}
	for decoder.More() {
		value, err := readValue(decoder)
		if err != nil {
			return nil, err
		}
		items = append(items, value)
	}
	_, err := decoder.Token()
	return items, err
}

func isRepeatedInside(value any) bool {
	switch value := value.(type) {
	case object:
		return value.isRepeated
	case []any:
		for _, item := range value {
			if isRepeatedInside(item) {
				return true
			}
		}
	}
	return false
}

// flatFields returns the fields of a flat object: texts, numbers and nulls.
func flatFields(read object) (Fields, error) {
	fields := Fields{}
	for name, value := range read.members {
		switch value := value.(type) {
		case nil:
		case string:
			fields[name] = value
		case json.Number:
			fields[name] = value.String()
		default:
			return nil, fmt.Errorf("%s is neither a text nor a number", name)
		}
		if !matchName.MatchString(name) {
			return nil, fmt.Errorf("%q: a name must be 1 to 64 of A-Z, a-z, 0-9 and _", name)
		}
	}
	return fields, nil
}

// findUnclear says why a signature over these fields would leave open what was signed, or nothing if it does not. A
// value with a line feed may look like two fields, and with MD5 also a value with `&`.
func findUnclear(fields Fields, method SignMethod) string {
	for name, text := range fields {
		if !matchName.MatchString(name) {
			return fmt.Sprintf("%q: a name must be 1 to 64 of A-Z, a-z, 0-9 and _", name)
		}
		if !utf8.ValidString(text) {
			return name + " must be UTF-8"
		}
		if searchControl.MatchString(text) {
			return name + " must not contain control characters"
		}
		if hidden := searchHidden.FindString(text); method == MD5 && hidden != "" {
			return name + " must not contain " + hidden + " with the method MD5"
		}
	}
	return ""
}
