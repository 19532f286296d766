// @ts-check
// A receiver that keeps callbacks in your database, here with any client that runs SQL.
import { createServer } from "node:http";

import { CallbackReceiver } from "merchant-wallet-client";

/**
 * @param {{ query: (sql: string, values: unknown[]) => Promise<{ rowCount: number | null }> }} database
 * @param {string} callbackSecret
 */
export function makeServer(database, callbackSecret) {
  const store = {
    /** @param {import("merchant-wallet-client").Callback} callback */
    async add(callback) {
      // `event_id` is the table's primary key, so the second of two attempts inserts nothing.
      const insert = "insert into callback (event_id, body) values ($1, $2) on conflict do nothing";
      const { rowCount } = await database.query(insert, [callback.eventId, callback.body]);
      return rowCount === 1;
    },
  };
  return createServer(new CallbackReceiver(callbackSecret, store).handler());
}
