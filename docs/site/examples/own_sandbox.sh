.venv/bin/merchant-wallet merchant create Shop
.venv/bin/merchant-wallet rates set USDT:KFB 7.10
.venv/bin/merchant-wallet rates set KFB:USDT 0.14
.venv/bin/merchant-wallet book credit Shop USDT 100000 --reason "opening funds"
.venv/bin/merchant-wallet book credit Shop KFB 100000 --reason "opening funds"
