-- The orders of the default cell that are frozen now. Their books can't have been judged on anything else: nothing runs meanwhile.
update withdrawal w set frozen_ms = p.frozen_ms
  from payout p
 where p.frozen_ms is not null and w.merchant_id = p.merchant_id and w.order_id = p.order_id and w.status in (0, 1, 3);
