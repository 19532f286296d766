module merchantwallet.example/client

go 1.22
