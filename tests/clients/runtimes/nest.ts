// An application of NestJS, compiled to CommonJS as its starter does. A provider is the client.
import "reflect-metadata";

import { Controller, Get, Injectable, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { MerchantWallet, OrderNotFoundError } from "merchant-wallet-client";

const env = (name: string): string => process.env[`MERCHANT_WALLET_${name}`] ?? "";

@Injectable()
class Wallet extends MerchantWallet {
  constructor() {
    super(env("URL"), env("APP_KEY"), env("SECRET"));
  }
}

@Controller()
class Calls {
  constructor(private readonly wallet: Wallet) {}

  @Get()
  async call(): Promise<string> {
    const { usdtBalance } = await this.wallet.getMerchantBalance();
    const refused: unknown = await this.wallet
      .queryOrder({ orderId: 1, mcOrderId: "none" })
      .catch((error: unknown) => error);
    if (!(refused instanceof OrderNotFoundError)) throw refused;
    return `${Number(usdtBalance) > 0} true ${refused.code}`;
  }
}

@Module({ controllers: [Calls], providers: [Wallet] })
class Application {}

async function main(): Promise<void> {
  const application = await NestFactory.create(Application, { logger: ["error"] });
  await application.listen(0, "127.0.0.1");
  const answer = await fetch(await application.getUrl());
  console.log(await answer.text());
  await application.close();
}

void main();
