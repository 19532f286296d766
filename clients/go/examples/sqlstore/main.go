// A receiver that keeps callbacks in your database, here with any driver of database/sql.
package main

import (
	"context"
	"database/sql"
	"log"
	"net/http"
	"os"

	wallet "merchantwallet.example/client"
)

type store struct{ database *sql.DB }

// Add inserts the callback. `event_id` is the table's primary key, so the second of two attempts inserts nothing.
func (s store) Add(ctx context.Context, callback wallet.Callback) (bool, error) {
	const insert = "insert into callback (event_id, body) values ($1, $2) on conflict do nothing"
	event := callback.Common()
	done, err := s.database.ExecContext(ctx, insert, event.EventID, string(event.Body))
	if err != nil {
		return false, err
	}
	inserted, err := done.RowsAffected()
	return inserted == 1, err
}

func main() {
	database, err := sql.Open(os.Getenv("DATABASE_DRIVER"), os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	receiver := wallet.NewCallbackReceiver(os.Getenv("MERCHANT_WALLET_CALLBACK_SECRET"), store{database})
	log.Fatal(http.ListenAndServe("127.0.0.1:8099", receiver))
}
