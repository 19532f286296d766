: "${MERCHANT_WALLET_URL:?}" "${MERCHANT_WALLET_APP_KEY:?}" "${MERCHANT_WALLET_SECRET:?}"
path=/merchant/getMerchantBalance
timestamp=$(date +%s)
nonce=$(openssl rand -hex 16)
sign=$(printf '%s\nappKey=%s\nnonceStr=%s\ntimestamp=%s' "$path" "$MERCHANT_WALLET_APP_KEY" "$nonce" "$timestamp" |
    openssl dgst -sha256 -hmac "$MERCHANT_WALLET_SECRET" | sed 's/.*= //' | cut -c 1-32)
curl --silent --show-error "$MERCHANT_WALLET_URL$path" --data-urlencode "appKey=$MERCHANT_WALLET_APP_KEY" \
    --data "timestamp=$timestamp" --data "nonceStr=$nonce" --data "sign=$sign"
