// Drives the page's Go code for callbacks: one question per line of standard input, one answer per line.
package main

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"driver/callback"
)

func main() {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	for _, line := range strings.Split(strings.TrimSuffix(string(input), "\n"), "\n") {
		parts := strings.Split(line, "\t")
		nowS, err := strconv.ParseInt(parts[0], 10, 64)
		if err != nil {
			panic(err)
		}
		body := []byte(parts[5])
		fmt.Println(callback.IsGenuine(parts[1], parts[2], parts[3], parts[4], body, time.Unix(nowS, 0)))
	}
}
