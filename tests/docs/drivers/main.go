// Drives the page's Go code: one question per line of standard input, one answer per line.
package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"driver/wallet"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(input), "\n"), "\n") {
		parts := strings.Split(line, "\t")
		if parts[0] == "sign" {
			fields := map[string]string{}
			for _, pair := range parts[3:] {
				name, value, _ := strings.Cut(pair, "=")
				fields[name] = value
			}
			fmt.Println(wallet.Sign(parts[2], parts[1], fields))
		} else {
			fmt.Println(wallet.Verify(parts[2], parts[1], parts[3], []byte(parts[4])))
		}
	}
}
