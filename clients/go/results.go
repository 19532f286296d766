package merchantwallet

import (
	"fmt"
	"math/big"
	"strconv"
	"time"
)

// Amount is a decimal text such as "12.5", exactly as it is on the wire. It is never a floating-point number.
type Amount string

// Rat returns the amount as an exact fraction to calculate with, or nil if it is no decimal.
func (a Amount) Rat() *big.Rat {
	value, isNumber := new(big.Rat).SetString(string(a))
	if !isNumber {
		return nil
	}
	return value
}

// TxnStatus is the status of an order. Later versions of the service may add some.
type TxnStatus string

// The statuses of an order.
const (
	Accepted  TxnStatus = "0"
	BeingPaid TxnStatus = "1"
	Paid      TxnStatus = "2"
	Failed    TxnStatus = "3"
	Cancelled TxnStatus = "4"
	Expired   TxnStatus = "5"
	Refunded  TxnStatus = "6"
)

// UserToMerchantTransfer is the result of TransferFromUserToMerchant.
type UserToMerchantTransfer struct {
	TransactionID int64
	Amount        Amount
	AmountArrival Amount
	Rate          Amount
	Fee           Amount
	Currency      string
	McOrderID     string
}

// MerchantToUserTransfer is the result of TransferFromMerchantToUser.
type MerchantToUserTransfer struct {
	TransactionID int64
	Amount        Amount
	Currency      string
	McOrderID     string
}

// WithdrawOrder is the result of CreateMerchantWithdrawOrder.
type WithdrawOrder struct {
	OrderID       int64
	McOrderID     string
	Amount        Amount
	AmountArrival Amount
	Currency      string
	ChainType     string
	Address       string
	TxnStatus     TxnStatus
}

// Order is the result of QueryOrder. NotifyTime is the zero time until the first callback was delivered.
type Order struct {
	OrderID       int64
	McOrderID     string
	Currency      string
	Amount        Amount
	Rate          Amount
	Fee           Amount
	AmountArrival Amount
	TxnTime       time.Time
	TxnStatus     TxnStatus
	CreateTime    time.Time
	NotifyTime    time.Time
	ExtUserID     string
	ChainType     string
}

// Customer is the result of GetMerchantCustomer. URL opens the wallet page for 15 minutes, for anyone who has it: do
// not store it and do not log it.
type Customer struct {
	UserID      int64
	ExtUserID   string
	Username    string
	Currency    string
	Balance     Amount
	URL         string
	Address     string
	TronAddress string
}

// Balance is the result of GetMerchantBalance.
type Balance struct {
	MerchantID  int64
	USDTBalance Amount
	KFBBalance  Amount
}

// Exchange is the result of MerchantWallet.Exchange.
type Exchange struct {
	SendCurrency    string
	ReceiveCurrency string
	Amount          Amount
	AmountArrival   Amount
	Rate            Amount
	TransactionID   int64
}

// WithdrawFee is the result of GetWithdrawFee.
type WithdrawFee struct {
	Amount        Amount
	AmountArrival Amount
	Fee           Amount
	Rate          Amount
}

// fieldReader reads typed values and keeps the first error.
type fieldReader struct {
	fields Fields
	err    error
}

func (r *fieldReader) text(name string) string {
	text, isThere := r.fields[name]
	if !isThere && r.err == nil {
		r.err = fmt.Errorf("there is no %s", name)
	}
	return text
}

func (r *fieldReader) amount(name string) Amount { return Amount(r.text(name)) }

func (r *fieldReader) id(name string) int64 {
	id, err := strconv.ParseInt(r.text(name), 10, 64)
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("%s is no whole number", name)
	}
	return id
}

func (r *fieldReader) time(name string) time.Time { return time.UnixMilli(r.id(name)).UTC() }

func (r *fieldReader) optionalTime(name string) time.Time {
	if _, isThere := r.fields[name]; !isThere {
		return time.Time{}
	}
	return r.time(name)
}

func (r *fieldReader) optionalID(name string) int64 {
	if _, isThere := r.fields[name]; !isThere {
		return 0
	}
	return r.id(name)
}

func readUserToMerchantTransfer(r *fieldReader) UserToMerchantTransfer {
	return UserToMerchantTransfer{
		TransactionID: r.id("transactionId"),
		Amount:        r.amount("amount"),
		AmountArrival: r.amount("amountArrival"),
		Rate:          r.amount("rate"),
		Fee:           r.amount("fee"),
		Currency:      r.text("currency"),
		McOrderID:     r.text("mcOrderId"),
	}
}

func readMerchantToUserTransfer(r *fieldReader) MerchantToUserTransfer {
	return MerchantToUserTransfer{
		TransactionID: r.id("transactionId"),
		Amount:        r.amount("amount"),
		Currency:      r.text("currency"),
		McOrderID:     r.text("mcOrderId"),
	}
}

func readWithdrawOrder(r *fieldReader) WithdrawOrder {
	return WithdrawOrder{
		OrderID:       r.id("orderId"),
		McOrderID:     r.text("mcOrderId"),
		Amount:        r.amount("amount"),
		AmountArrival: r.amount("amountArrival"),
		Currency:      r.text("currency"),
		ChainType:     r.text("chainType"),
		Address:       r.text("address"),
		TxnStatus:     TxnStatus(r.text("txnStatus")),
	}
}

func readOrder(r *fieldReader) Order {
	return Order{
		OrderID:       r.id("orderId"),
		McOrderID:     r.text("mcOrderId"),
		Currency:      r.text("currency"),
		Amount:        r.amount("amount"),
		Rate:          r.amount("rate"),
		Fee:           r.amount("fee"),
		AmountArrival: r.amount("amountArrival"),
		TxnTime:       r.time("txnTime"),
		TxnStatus:     TxnStatus(r.text("txnStatus")),
		CreateTime:    r.time("createTime"),
		NotifyTime:    r.optionalTime("notifyTime"),
		ExtUserID:     r.fields["extUserId"],
		ChainType:     r.text("chainType"),
	}
}

func readCustomer(r *fieldReader) Customer {
	return Customer{
		UserID:      r.id("userId"),
		ExtUserID:   r.text("extUserId"),
		Username:    r.text("username"),
		Currency:    r.text("currency"),
		Balance:     r.amount("balance"),
		URL:         r.text("url"),
		Address:     r.text("address"),
		TronAddress: r.text("tronAddress"),
	}
}

func readBalance(r *fieldReader) Balance {
	return Balance{
		MerchantID:  r.id("merchantId"),
		USDTBalance: r.amount("usdtBalance"),
		KFBBalance:  r.amount("kfbBalance"),
	}
}

func readExchange(r *fieldReader) Exchange {
	return Exchange{
		SendCurrency:    r.text("sendCurrency"),
		ReceiveCurrency: r.text("receiveCurrency"),
		Amount:          r.amount("amount"),
		AmountArrival:   r.amount("amountArrival"),
		Rate:            r.amount("rate"),
		TransactionID:   r.id("transactionId"),
	}
}

func readWithdrawFee(r *fieldReader) WithdrawFee {
	return WithdrawFee{
		Amount:        r.amount("amount"),
		AmountArrival: r.amount("amountArrival"),
		Fee:           r.amount("fee"),
		Rate:          r.amount("rate"),
	}
}
