// Package merchantwallet is a client of merchant-wallet. It signs requests, verifies every answer, repeats what is
// safe to repeat, and receives callbacks. It uses the standard library only.
//
// Amounts are decimal texts of the type Amount, never floating-point numbers.
package merchantwallet
