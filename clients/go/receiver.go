package merchantwallet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
)

const maxCallbackBytes = 64 << 10

// CallbackStore is where callbacks are kept before they are answered. Your database is the best place.
type CallbackStore interface {
	// Add stores the callback for good. It returns false if this EventID is there already. In a database it is an
	// insert with a unique key on the event id, in the transaction that also records what is to be done.
	Add(ctx context.Context, callback Callback) (isNew bool, err error)
}

// CallbackReceiver is an http.Handler that verifies callbacks, stores each event once, and only then says `success`.
type CallbackReceiver struct {
	Verifier Verifier
	Store    CallbackStore
	// OnNew gets each callback after it was stored and before it is answered; it must be quick. What it misses in a
	// crash is in the store. It may be nil.
	OnNew func(Callback)
	// OnError gets the reason of each refused or lost callback. Default: log.Print.
	OnError func(error)
}

// NewCallbackReceiver returns a receiver. The secret is your callback secret or your secret.
func NewCallbackReceiver(secret string, store CallbackStore) *CallbackReceiver {
	return &CallbackReceiver{Verifier: Verifier{Secrets: []string{secret}}, Store: store}
}

// ServeHTTP answers 200 `success` when the callback is stored, also if it came before; 400 if it is not genuine; 500 if
// the store failed, so that the service sends it again.
func (c *CallbackReceiver) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxCallbackBytes))
	if err != nil {
		c.fail(response, http.StatusRequestEntityTooLarge, "the body could not be read", err)
		return
	}
	callback, err := c.Verifier.Verify(body, request.Header)
	var bad *BadCallbackError
	if errors.As(err, &bad) {
		c.fail(response, http.StatusBadRequest, bad.Error(), err)
		return
	}
	isNew := false
	if err == nil {
		isNew, err = c.Store.Add(request.Context(), callback)
	}
	if err != nil {
		c.fail(response, http.StatusInternalServerError, "the callback could not be stored", err)
		return
	}
	if isNew && c.OnNew != nil {
		c.OnNew(callback)
	}
	_, _ = io.WriteString(response, "success")
}

func (c *CallbackReceiver) fail(response http.ResponseWriter, status int, text string, err error) {
	if c.OnError != nil {
		c.OnError(err)
	} else {
		log.Print("callback: ", err)
	}
	http.Error(response, text, status)
}

// FileCallbackStore keeps each callback in a file of a folder. Enough for one machine; needs no database.
type FileCallbackStore struct{ Folder string }

var matchPlain = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Add writes the body to the disk, then gives it its name, which only one of two writers can.
func (s FileCallbackStore) Add(_ context.Context, callback Callback) (bool, error) {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return false, err
	}
	event := callback.Common()
	unfinished, err := s.write(event.Body)
	if err != nil {
		return false, err
	}
	defer os.Remove(unfinished)
	err = os.Link(unfinished, filepath.Join(s.Folder, fileName(event.EventID)))
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, s.sync()
}

func (s FileCallbackStore) write(body []byte) (string, error) {
	file, err := os.CreateTemp(s.Folder, ".*.tmp")
	if err != nil {
		return "", err
	}
	_, err = file.Write(body)
	return file.Name(), errors.Join(err, file.Sync(), file.Close())
}

// sync makes the new name last.
func (s FileCallbackStore) sync() error {
	folder, err := os.Open(s.Folder)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func fileName(eventID string) string {
	if !matchPlain.MatchString(eventID) {
		digest := sha256.Sum256([]byte(eventID))
		eventID = hex.EncodeToString(digest[:])
	}
	return eventID + ".json"
}
